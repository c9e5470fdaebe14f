-- A job's row, locked: whoever changes it or records its ticks does so one at a time. The time is read under the lock.
-- No key is ever changed: a full lock would wait for, and be starved by, the foreign keys of the batches under way.
select j.id, j.election, j.fingerprint, j.evaluated_until, j.paused_at, j.paused_reason, j.pauses, j.removed_at is not null as removed,
       clock_timestamp() as now
  from bursar.job j
 where j.name = $1
   for no key update;

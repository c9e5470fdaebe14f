-- Rows of jobs, locked in the order of their ids: whoever records their ticks does so one at a time. The time is read in a statement
-- of its own after it. No key is ever changed: a full lock would wait for the foreign keys of the batches under way. One that
-- somebody else holds is left out, and looked at again a moment later: it keeps back no other.
-- $1 names
select j.id, j.election, j.fingerprint, j.evaluated_until, j.paused_reason, j.removed_at is not null as removed
  from bursar.job j
 where j.name = any ($1)
 order by j.id
   for no key update skip locked;

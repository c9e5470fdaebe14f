-- A job's row, and the store's time. Inside a fenced transaction that writes: nobody changes the row until its end.
select j.id, j.election, j.fingerprint, j.evaluated_until, j.paused_at, j.paused_reason, j.pauses, j.removed_at is not null as removed,
       c.now
  from job j, clock c
 where j.name = ?1;

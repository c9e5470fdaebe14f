-- Rows of jobs, and the store's time. Inside a fenced transaction that writes: nobody changes the rows until its end.
-- ?1 names
select j.id, j.election, j.fingerprint, j.evaluated_until, j.paused_reason, j.removed_at is not null as removed, c.now
  from json_each(?1) t
 cross join job j on j.name = t.value
 cross join clock c;

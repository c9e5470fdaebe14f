-- Runs of a job with a nominal tick in that second, oldest first. A manual run may have a tick between two seconds.
-- ?1 job, ?2 tick
select r.id
  from run r
 where r.job = ?1 and r.tick >= ?2 and r.tick < ?2 + 1000000
 order by r.id;

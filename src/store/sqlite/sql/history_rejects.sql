-- Refusals, newest first.
-- ?1 limit
select j.election, j.term, j.tenure_id, j.found_term, j.found_tenure_id, j.operation, j.replica, j.at
  from fence_reject j
 order by j.id desc
 limit ?1;

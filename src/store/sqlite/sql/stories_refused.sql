-- What of a tenure was refused, by operation.
-- ?1 election, ?2 term, ?3 tenure
select j.operation, count(*) as count, max(j.at) as last_at
  from fence_reject j
 where j.election = ?1 and j.term = ?2 and j.tenure_id = ?3
 group by j.operation
 order by max(j.at), j.operation;

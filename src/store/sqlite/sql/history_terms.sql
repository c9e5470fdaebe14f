-- Accepted terms, newest first.
-- ?1 limit
select h.election, h.term, h.tenure_id, h.replica, h.host, h.version, h.accepted_at, h.worked_at, h.ended_at, h.end_reason
  from term_history h
 order by h.accepted_at desc, h.election, h.term desc
 limit ?1;

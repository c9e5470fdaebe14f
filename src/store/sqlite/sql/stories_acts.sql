-- Operators' acts while a term was in force, oldest first: those that found it there, and of those that look at no term what was
-- done on its election, or on none, from its acceptance to the next one's. Imports come all day, and explain nothing of a term,
-- nor do cordons of other replicas.
-- ?1 election, ?2 term, ?3 tenure, ?4 limit
select a.at, a.action, a.target, a.reason, a.os_user || '@' || a.host as by, a.role, a.term
  from (select h.election, h.term, h.replica, h.accepted_at,
               (select min(t.accepted_at) from term_history t
                 where t.election = h.election and t.accepted_at > h.accepted_at) as next_at
          from term_history h
         where h.election = ?1 and h.term = ?2 and h.tenure_id = ?3) h
  join operator_act a
    on (a.election = h.election and a.term = h.term)
    or (a.term is null and coalesce(a.election, h.election) = h.election and a.action <> 'import'
        and (a.action not in ('cordon', 'uncordon') or a.target = h.replica)
        and a.at >= h.accepted_at and (h.next_at is null or a.at < h.next_at))
 order by a.id
 limit ?4;

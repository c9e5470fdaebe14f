-- Operators' acts while a term was in force, oldest first: those that found it there, and of those that look at no term what was
-- done on its election, or on none, from its acceptance to the next one's. Imports come all day, and explain nothing of a term,
-- nor do cordons of other replicas.
-- $1 election, $2 term, $3 tenure, $4 limit
select a.at, a.action, a.target, a.reason, a.os_user || '@' || a.host as by, a.role, a.term
  from bursar.term_history h
 cross join lateral (
       select min(t.accepted_at) as at
         from bursar.term_history t
        where t.election = h.election and t.accepted_at > h.accepted_at) n
  join bursar.operator_act a
    on (a.election = h.election and a.term = h.term)
    or (a.term is null and coalesce(a.election, h.election) = h.election and a.action <> 'import'
        and (a.action not in ('cordon', 'uncordon') or a.target = h.replica)
        and a.at >= h.accepted_at and (n.at is null or a.at < n.at))
 where h.election = $1 and h.term = $2 and h.tenure_id = $3
 order by a.id
 limit $4;

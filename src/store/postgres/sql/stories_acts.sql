-- Operators' acts on an election that found this term in force, oldest first.
-- $1 election, $2 term, $3 limit
select a.at, a.action, a.target, a.reason, a.os_user || '@' || a.host as by, a.role, a.term
  from bursar.operator_act a
 where a.election = $1 and a.term = $2
 order by a.id
 limit $3;

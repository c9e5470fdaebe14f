-- Requests that wait in any election, oldest first, with who asked and why. Reads only, for people.
-- ?1 limit
select q.id, q.election, q.kind, q.at, a.action, a.target, a.reason, a.os_user || '@' || a.host as by
  from request q
  join operator_act a on a.id = q.act_id
 where q.state = 'waiting'
 order by q.at, q.id
 limit ?1;

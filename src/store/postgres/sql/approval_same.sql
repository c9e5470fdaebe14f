-- A request that waits and asks the very same, of what is as it was then: one that nobody can approve any more is no answer.
-- $1 action, $2 target, $3 request, $4 what was found
select a.id
  from bursar.approval a
 where a.state = 'waiting' and a.action = $1 and a.target = $2 and a.request = $3 and a.found = $4
 order by a.id
 limit 1;

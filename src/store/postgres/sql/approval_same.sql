-- A request that waits and asks the very same.
-- $1 action, $2 target, $3 request
select a.id
  from bursar.approval a
 where a.state = 'waiting' and a.action = $1 and a.target = $2 and a.request = $3
 order by a.id
 limit 1;

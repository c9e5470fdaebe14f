-- Requests that wait in an election, oldest first. Inside a fenced transaction.
select q.id, q.id::text as name, q.kind, q.at from bursar.request q
 where q.election = $1 and q.state = 'waiting'
 order by q.at, q.id
 limit 100;

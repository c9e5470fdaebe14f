-- Requests that wait in an election, oldest first. Inside a fenced transaction.
select q.id, q.id as name, q.kind, q.at from request q
 where q.election = ?1 and q.state = 'waiting'
 order by q.at, q.id
 limit 100;

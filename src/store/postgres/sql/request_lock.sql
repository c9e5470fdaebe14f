-- One request of an election, locked: executed once. Inside a fenced transaction.
select q.result from bursar.request q where q.id = $1 and q.election = $2 for update;

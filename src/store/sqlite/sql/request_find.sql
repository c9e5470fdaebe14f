-- One request of an election. Inside a fenced transaction, in which nobody else writes: executed once.
select q.result from request q where q.id = ?1 and q.election = ?2;

-- How a request went; no result while it waits.
select q.result from request q where q.id = ?1;

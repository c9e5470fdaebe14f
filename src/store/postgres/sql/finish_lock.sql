-- Locks a run, for its end or for what may change that: the end of planning, a retry of its units, a word on one of them.
-- No key is ever changed: it neither waits for the foreign keys of batches nor holds them up.
-- $1 run, $2 election
select r.state from bursar.run r where r.id = $1 and r.election = $2 for no key update;

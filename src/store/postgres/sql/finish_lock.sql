-- Fenced (begin). Locks a run for its end; only this and the end of planning lock one.
-- No key is ever changed: it neither waits for the foreign keys of batches nor holds them up.
-- $1 run, $2 election
select r.state from bursar.run r where r.id = $1 and r.election = $2 for no key update;

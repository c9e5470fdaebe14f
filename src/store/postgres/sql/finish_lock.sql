-- Fenced (begin). Locks a run for its end; only this and the end of planning lock one.
-- $1 run, $2 election
select r.state from bursar.run r where r.id = $1 and r.election = $2 for update;

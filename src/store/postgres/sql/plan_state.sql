-- Fenced (begin). The state of a run; a page of a plan locks nothing of it.
-- $1 run, $2 election
select r.state from bursar.run r where r.id = $1 and r.election = $2;

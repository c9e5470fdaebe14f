-- Fenced (begin). The state of a run, and why it is given up where it is; a page of a plan locks nothing of it.
-- $1 run, $2 election
select r.state, r.why from bursar.run r where r.id = $1 and r.election = $2;

-- Fenced (begin). A run to be given up: its state, why it is, and whether for its leaders' deaths (a run that cannot be planned
-- has fewer: deaths are not counted over one that is given up). A page locks nothing of it.
-- $1 run, $2 election, $3 deaths
select r.state, r.why, r.deaths >= $3 as deadly from bursar.run r where r.id = $1 and r.election = $2;

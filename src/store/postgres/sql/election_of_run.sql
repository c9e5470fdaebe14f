-- The election of a run.
select r.election from bursar.run r where r.id = $1;

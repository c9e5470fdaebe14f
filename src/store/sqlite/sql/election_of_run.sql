-- The election of a run.
select r.election from run r where r.id = ?1;

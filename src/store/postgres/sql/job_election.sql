-- The election of a job.
select j.election from bursar.job j where j.name = $1 and j.removed_at is null;

-- The election of a job, whose row is held until the request for it is in: a job that goes over to another election takes along
-- what was asked for of it (take_over_requests.sql).
select j.election from bursar.job j where j.name = $1 and j.removed_at is null for share;

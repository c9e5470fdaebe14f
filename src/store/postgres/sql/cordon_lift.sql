-- Lets a replica lead again.
-- $1 replica
delete from bursar.cordon c where c.replica = $1;

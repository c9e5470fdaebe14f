-- Whether a replica is cordoned.
-- $1 replica
select exists (select from bursar.cordon c where c.replica = $1) as cordoned;

-- The term in force, which an operator's act is stamped with. The gate is held shared.
-- $1 election
select f.term from bursar.fence f where f.election = $1;

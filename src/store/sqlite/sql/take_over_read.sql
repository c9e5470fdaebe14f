-- A job's row with its definition, which is about to go over to another election. Fenced; nobody changes it until the transaction's
-- end.
-- ?1 job
select j.id, j.election, j.definition, j.removed_at is not null as removed from job j where j.name = ?1;

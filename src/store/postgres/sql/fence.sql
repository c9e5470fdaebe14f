-- The fence of one election.
select f.term, f.tenure_id, f.halt_reason, f.halted_at, f.halted_by from bursar.fence f where f.election = $1;

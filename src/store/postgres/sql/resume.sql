-- Resumes an election. Runs under its exclusive lock. No row: it was not halted.
update bursar.fence f set halted_at = null, halt_reason = null, halted_by = null
 where f.election = $1 and f.halted_at is not null
returning f.term;

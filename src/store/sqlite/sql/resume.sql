-- Resumes an election. Under the file's write lock. No row: it was not halted.
update fence set halted_at = null, halt_reason = null, halted_by = null where election = ?1 and halted_at is not null;

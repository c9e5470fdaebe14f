-- Takes an election's gate shared for an operator's act: nobody advances, halts or resumes before it has committed. The term
-- is read in a statement of its own after it.
-- $1 election
select pg_advisory_xact_lock_shared(bursar.gate($1)) is null as taken;

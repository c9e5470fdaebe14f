-- Whoever advances, halts or resumes takes this first, in a statement of its own: what follows has a fresh snapshot.
select pg_advisory_xact_lock(bursar.gate($1));

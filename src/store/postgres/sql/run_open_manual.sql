-- A manual run of a request. Fenced; the request's row is locked. No row: the job is not as it was read, or the cutoff is
-- in the future.
insert into bursar.run (job_id, job, election, kind, request_id, tick, due_at, cutoff_at, value_date, definition,
                        fingerprint, state, deadline_at, opened_term)
select j.id, j.name, j.election, 'manual', $5, $7, $8, $9, $10, j.definition, j.fingerprint, 'planning',
       clock_timestamp() + make_interval(secs => $6), $4
  from bursar.job j
 where j.id = $1 and j.election = $2 and j.fingerprint = $3 and j.removed_at is null and $9 <= clock_timestamp()
returning id;

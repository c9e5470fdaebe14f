-- A manual run of a request. Fenced; nobody else writes meanwhile. No row: the job is not as it was read, or the cutoff is
-- in the future.
-- ?1 job, ?2 election, ?3 fingerprint, ?4 term, ?5 request, ?6 deadline in microseconds (null: none), ?7 tick, ?8 due,
-- ?9 cutoff, ?10 value date
insert into run (job_id, job, election, kind, request_id, tick, due_at, cutoff_at, value_date, definition,
                 fingerprint, state, deadline_at, opened_term, opened_at, fenced_seq)
select j.id, j.name, j.election, 'manual', ?5, ?7, ?8, ?9, ?10, j.definition, j.fingerprint, 'planning',
       c.now + ?6, ?4, c.now, s.value
  from job j
 cross join clock c
 cross join fenced_seq s
 where j.id = ?1 and j.election = ?2 and j.fingerprint = ?3 and j.removed_at is null and ?9 <= c.now
returning id;

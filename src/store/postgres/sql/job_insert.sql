-- A new job, evaluated from the store's now on. Fenced. No row: another election's leader was first.
insert into bursar.job (name, election, definition, fingerprint, evaluated_until, term)
values ($1, $2, $3, $4, clock_timestamp(), $5)
on conflict (name) do nothing
returning id, definition, fingerprint, evaluated_until, paused_reason, pauses;

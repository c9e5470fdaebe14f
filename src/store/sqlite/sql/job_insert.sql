-- A new job, evaluated from the store's now on. Fenced. No row: another election's leader was first.
-- ?1 name, ?2 election, ?3 definition, ?4 fingerprint, ?5 term
insert into job (name, election, definition, fingerprint, evaluated_until, term, created_at)
select ?1, ?2, ?3, ?4, now, ?5, now from clock where true
on conflict (name) do nothing
returning id, definition, fingerprint, evaluated_until, paused_reason, pauses;

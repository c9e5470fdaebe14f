-- Halts an election; also one that nobody ever led. Runs under its exclusive lock. No row: it was halted already.
insert into bursar.fence as f (election, term, tenure_id, halted_at, halt_reason, halted_by)
values ($1, 0, '00000000-0000-0000-0000-000000000000', clock_timestamp(), $2, $3)
on conflict (election) do update
   set halted_at = excluded.halted_at, halt_reason = excluded.halt_reason, halted_by = excluded.halted_by
 where f.halted_at is null
returning f.term;

-- Halts an election; also one that nobody ever led. Runs under its exclusive lock. No row: it was halted already.
-- Where an operator's halt stands and bursar itself halts ($4), its reason is added once: whoever resumes must read it.
-- $1 election, $2 reason, $3 by, $4 whether bursar halts by itself
insert into bursar.fence as f (election, term, tenure_id, halted_at, halt_reason, halted_by)
values ($1, 0, '00000000-0000-0000-0000-000000000000', clock_timestamp(), $2, $3)
on conflict (election) do update
   set halted_at = coalesce(f.halted_at, excluded.halted_at),
       halt_reason = case when f.halted_at is null then excluded.halt_reason
                          else f.halt_reason || '; bursar: ' || excluded.halt_reason end,
       halted_by = coalesce(f.halted_by, excluded.halted_by)
 where f.halted_at is null
    or ($4 and f.halted_by not like 'bursar@%' and position('; bursar: ' in f.halt_reason) = 0)
returning f.term;

-- Halts an election that has a fence. Under the file's write lock. No row: it was halted already, or nobody ever led.
-- Where an operator's halt stands and bursar itself halts (?4), its reason is added once: whoever resumes must read it.
-- ?1 election, ?2 reason, ?3 by, ?4 whether bursar halts by itself
update fence
   set halted_at = coalesce(halted_at, (select now from clock)),
       halt_reason = case when halted_at is null then ?2 else halt_reason || '; bursar: ' || ?2 end,
       halted_by = coalesce(halted_by, ?3)
 where election = ?1
   and (halted_at is null
        or (?4 and halted_by not glob 'bursar@*' and instr(halt_reason, '; bursar: ') = 0));

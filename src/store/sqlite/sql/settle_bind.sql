-- Fenced (begin), after a claim. Binds the open entries of the claimed units to them, for ever, and answers each one bound:
-- the sums are over exactly these, and made by the caller, for SQLite's own sum fails where it leaves 64 bits.
-- Safe because: the UPDATE sets the unit only where there is none, and nobody else writes until the transaction's end. A
-- SELECT beside it would also see what an earlier generation of a unit has bound.
-- The index is named: one look into the open entries per unit, whatever the planner thinks that it knows.
-- ?1 units: [id, merchant, currency, whether the job selects these], ?2 cutoff, ?3 job, ?4 sources (empty: all). What bursar wrote
-- for a job (a carry, the opposite of what it settled) is that job's alone, and so whatever the job selects by now.
update entry indexed by entry_open
   set unit_id = w.unit_id
  from (select value ->> 0 as unit_id, value ->> 1 as merchant, value ->> 2 as currency, value ->> 3 as selected from json_each(?1)) w
 where entry.merchant = w.merchant
   and entry.currency = w.currency
   and entry.unit_id is null
   and entry.withdrawn_at is null
   and entry.available_at < ?2
   and (entry.job_id = ?3
        or (entry.job_id is null and w.selected and (?4 = '[]' or entry.source in (select value from json_each(?4)))))
   and not exists (select 1 from merchant_hold h where h.merchant = entry.merchant)
returning unit_id, source, kind = 'carry' as carry, amount, fee, available_at;

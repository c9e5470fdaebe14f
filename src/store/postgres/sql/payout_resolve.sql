-- An operator's word on what came of a payout, with the postings that follow from it.
-- Safe because: the row is locked, the state that was decided upon is named, journal and carry are unique per unit, and the
-- term that was found under the gate is asked for once more by a trigger.
-- $1 instruction, $2 state expected, $3 new state (paid, rejected, returned), $4 reference, $5 act, $6 term
with told as (
    update bursar.instruction i
       set state = $3, reason = null, external_reference = case when $3 = 'returned' then i.external_reference else coalesce($4, i.external_reference) end,
           return_reference = case when $3 = 'returned' then $4 end, resolved_act_id = $5,
           next_attempt_at = null, final_at = clock_timestamp()
     where i.id = $1 and i.state = $2
    returning i.unit_id, i.run_id, i.job_id, i.generation, i.election, i.merchant, i.currency, i.amount
), journals as (
    insert into bursar.journal (unit_id, run_id, kind, generation, election, term)
    select t.unit_id, t.run_id, $3, t.generation, t.election, $6 from told t
    returning id
), postings as (
    insert into bursar.posting (journal_id, seq, debit_kind, debit_owner, credit_kind, credit_owner, currency, amount)
    select j.id, 1,
           case $3 when 'returned' then 'bank' else 'payout_clearing' end, '',
           case $3 when 'paid' then 'bank' else 'carry' end,
           case $3 when 'paid' then '' else r.job || '/' || t.merchant end,
           t.currency, t.amount
      from journals j, told t
      join bursar.run r on r.id = t.run_id
    returning 1
), carries as (
    insert into bursar.entry (source, external_id, merchant, currency, kind, amount, fee, occurred_at, available_at, job_id)
    select 'bursar', $3 || ':' || t.unit_id || ':' || t.generation, t.merchant, t.currency, 'carry', t.amount, 0,
           clock_timestamp(), clock_timestamp(), t.job_id
      from told t
     where $3 in ('rejected', 'returned')
    returning 1
)
select (select count(*) from told)     as told,
       (select count(*) from postings) as postings,
       (select count(*) from carries)  as carries;

-- Fenced (record). What came of payouts, with the postings that follow: paid leaves payout clearing for the bank; rejected
-- comes back as a carry of its job.
-- Safe because: instructions are locked in the order of ids; a try is recorded only while it is on the wire under this term
-- (a look-up: while the outcome is still unknown) and is the one that is named, so that recording it twice records it once;
-- journal and carry are unique per unit, and derive from the rows that were locked; the term is asked for once more by a
-- trigger. A doubt, once there, stays, and nothing in doubt is reversed.
-- Fates: paid, mismatch, rejected, unknown (a wait of null: held), back and undone (as it was before the try, after the wait).
-- Of what is put back no byte ever left: its key has not begun to count. What left and was proved undone keeps its first try.
-- $1 election, $2 term, $3 instructions, $4 tries, $5 fates, $6 errors, $7 waits in milliseconds, $8 references, $9 look-ups
with given as materialized (
    select g.*
      from unnest($3::bigint[], $4::integer[], $5::text[], $6::text[], $7::bigint[], $8::text[], $9::boolean[])
           as g (id, attempt, fate, error, again_ms, reference, look_up)
), held as materialized (
    select i.id, i.unit_id, i.run_id, i.job_id, i.generation, i.merchant, i.currency, i.amount, i.in_doubt,
           g.attempt, g.fate, g.error, g.again_ms, g.reference
      from bursar.instruction i
      join given g on g.id = i.id
     where i.election = $1
       and i.kind = 'payout'
       and i.attempts = g.attempt
       and case when g.look_up then i.state = 'unknown' else i.state = 'sending' and i.sending_term = $2 end
     order by i.id
       for update of i
), told as materialized (
    select h.*, r.job,
           h.in_doubt or h.fate in ('unknown', 'mismatch') as doubt,
           case
               when h.fate = 'paid' then 'paid'
               when h.fate = 'rejected' and not h.in_doubt then 'rejected'
               when h.fate in ('rejected', 'mismatch') then 'held'
               when h.fate = 'unknown' and h.again_ms is null then 'held'
               when h.fate = 'unknown' or h.in_doubt then 'unknown'
               else 'pending'
           end as state
      from held h
      join bursar.run r on r.id = h.run_id
), updated as (
    update bursar.instruction i
       set state = t.state,
           reason = case when t.state <> 'held' then null when t.fate = 'mismatch' then 'mismatch' else 'unknown' end,
           in_doubt = t.doubt,
           first_sent_at = case when t.fate <> 'back' or t.doubt then i.first_sent_at end,
           key_valid_until = case when t.fate <> 'back' or t.doubt then i.key_valid_until end,
           next_attempt_at = case when t.state in ('pending', 'unknown')
                                  then clock_timestamp() + t.again_ms * interval '1 millisecond' end,
           last_error = coalesce(t.error, i.last_error),
           external_reference = coalesce(t.reference, i.external_reference),
           sending_term = null,
           final_at = case when t.state in ('paid', 'rejected') then clock_timestamp() end
      from told t
     where i.id = t.id
    returning i.id
), tries as (
    update bursar.instruction_try y
       set ended_at = clock_timestamp(), outcome = case t.fate when 'back' then 'not_sent' else t.fate end, detail = t.error
      from told t
     where y.instruction_id = t.id and y.attempt = t.attempt
), journals as (
    insert into bursar.journal (unit_id, run_id, kind, generation, election, term)
    select t.unit_id, t.run_id, t.state, t.generation, $1, $2
      from told t
     where t.state in ('paid', 'rejected')
    returning id, unit_id, generation
), postings as (
    insert into bursar.posting (journal_id, seq, debit_kind, debit_owner, credit_kind, credit_owner, currency, amount)
    select j.id, 1, 'payout_clearing', '',
           case t.state when 'paid' then 'bank' else 'carry' end,
           case t.state when 'paid' then '' else t.job || '/' || t.merchant end,
           t.currency, t.amount
      from journals j
      join told t on t.unit_id = j.unit_id and t.generation = j.generation
    returning 1
), carries as (
    insert into bursar.entry (source, external_id, merchant, currency, kind, amount, fee, occurred_at, available_at, job_id)
    select 'bursar', 'rejected:' || t.unit_id || ':' || t.generation, t.merchant, t.currency, 'carry', t.amount, 0,
           clock_timestamp(), clock_timestamp(), t.job_id
      from told t
     where t.state = 'rejected'
    returning 1
)
select t.id, t.fate, t.state,
       (select count(*) from updated)  as updated,
       (select count(*) from postings) as postings,
       (select count(*) from carries)  as carries
  from told t
 order by t.id;

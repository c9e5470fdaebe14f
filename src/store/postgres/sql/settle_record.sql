-- Fenced (begin), after a claim (and, for the ledger, a bind). Ends the claimed units and writes all that follows from them:
-- their journals with postings, carries, instructions, and the batch's own row.
-- Safe because: the transition names the state and the attempts that it expects, every count is compared by the caller with
-- what was asked for, and fewer rows roll the whole transaction back. Journal and instruction are unique per unit and kind;
-- an insert trigger asks for the term once more.
-- The parts join the arrays, not each other's results, where they can: a planner that guesses few rows would compare each
-- with each.
-- $1 run, $2 election, $3 term, $4 job
-- units ended: $5 ids, $6 attempts expected, $7 states, $8 nets
-- units with a journal: $9 ids, $10 generations
-- postings: $11 units, $12 seqs, $13 debit kinds, $14 debit owners, $15 credit kinds, $16 credit owners, $17 currencies, $18 amounts
-- carries: $19 external ids, $20 merchants, $21 currencies, $22 amounts, $23 available at
-- instructions: $24 units, $25 generations, $26 keys, $27 merchants, $28 currencies, $29 amounts, $30 bodies, $31 states,
-- $32 reasons, $33 release, $34 value date
-- counts for the batch: $35 settled, $36 carried, $37 empty
with batch as (
    insert into bursar.batch (run_id, election, term, units, settled, carried, empty, set_aside, instructions)
    values ($1, $2, $3, cardinality($5::bigint[]), $35, $36, $37, 0, cardinality($24::bigint[]))
    returning id
), ended as (
    update bursar.unit u
       set state = g.state,
           net = g.net,
           batch_id = (select b.id from batch b),
           term = $3,
           xact = pg_current_xact_id(),
           next_attempt_at = null,
           ended_at = clock_timestamp()
      from unnest($5::bigint[], $6::integer[], $7::text[], $8::bigint[]) as g (id, attempts, state, net)
     where u.id = g.id
       -- By their ids alone: an index of the run's units would be read from end to end.
       and u.run_id + 0 = $1
       and u.election = $2
       and u.state = 'pending'
       and u.attempts = g.attempts
    returning u.id
), journals as (
    insert into bursar.journal (unit_id, run_id, kind, generation, election, term)
    select g.unit_id, $1, 'settle', g.generation, $2, $3
      from unnest($9::bigint[], $10::integer[]) as g (unit_id, generation)
    returning id, unit_id
), postings as (
    insert into bursar.posting (journal_id, seq, debit_kind, debit_owner, credit_kind, credit_owner, currency, amount)
    select j.id, g.seq, g.debit_kind, g.debit_owner, g.credit_kind, g.credit_owner, g.currency, g.amount
      from unnest($11::bigint[], $12::smallint[], $13::text[], $14::text[], $15::text[], $16::text[], $17::text[], $18::bigint[])
           as g (unit_id, seq, debit_kind, debit_owner, credit_kind, credit_owner, currency, amount)
      join journals j on j.unit_id = g.unit_id
    returning 1
), carries as (
    insert into bursar.entry (source, external_id, merchant, currency, kind, amount, fee, occurred_at, available_at, job_id)
    select 'bursar', g.external_id, g.merchant, g.currency, 'carry', g.amount, 0, clock_timestamp(), g.available_at, $4
      from unnest($19::text[], $20::text[], $21::text[], $22::bigint[], $23::timestamptz[])
           as g (external_id, merchant, currency, amount, available_at)
    returning 1
), instructions as (
    insert into bursar.instruction
           (unit_id, run_id, job_id, election, kind, generation, idempotency_key, merchant, currency, amount, body, value_date,
            state, reason, release, term)
    select g.unit_id, $1, $4, $2, 'payout', g.generation, g.key, g.merchant, g.currency, g.amount, g.body, $34,
           g.state, g.reason, $33, $3
      from unnest($24::bigint[], $25::integer[], $26::text[], $27::text[], $28::text[], $29::bigint[], $30::bytea[], $31::text[], $32::text[])
           as g (unit_id, generation, key, merchant, currency, amount, body, state, reason)
    returning 1
)
select (select b.id from batch b)         as batch,
       (select count(*) from ended)        as units,
       (select count(*) from journals)     as journals,
       (select count(*) from postings)     as postings,
       (select count(*) from carries)      as carries,
       (select count(*) from instructions) as instructions;

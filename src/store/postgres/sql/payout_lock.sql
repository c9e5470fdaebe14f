-- Locks one payout for an operator's act, with what that has to go by. The gate is held shared.
-- Whether it surely was never sent can be said only where its run and its job both send: elsewhere somebody else takes payouts
-- from the store.
-- $1 key
select i.id, i.state, i.reason, i.in_doubt, i.attempts,
       i.first_sent_at is null and not i.in_doubt
           and coalesce(jsonb_typeof(r.definition #> '{handler,ledger,payout,http}') = 'object', false)
           and coalesce(jsonb_typeof(j.definition #> '{handler,ledger,payout,http}') = 'object', false) as never_sent,
       coalesce(i.key_valid_until < clock_timestamp(), false) as expired,
       i.key_valid_until
  from bursar.instruction i
  join bursar.run r on r.id = i.run_id
  join bursar.job j on j.id = i.job_id
 where i.idempotency_key = $1
   and i.kind = 'payout'
   for update of i;

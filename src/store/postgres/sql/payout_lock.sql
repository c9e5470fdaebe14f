-- Locks one payout for an operator's act, with what that has to go by. The gate is held shared.
-- Whether it surely was never sent can be said of jobs that send only: elsewhere somebody else takes payouts from the store.
-- $1 key
select i.id, i.state, i.reason, i.attempts, i.in_doubt,
       i.first_sent_at is null and not i.in_doubt and coalesce(jsonb_typeof(j.definition #> '{handler,ledger,payout,http}') = 'object', false)
           as never_sent,
       coalesce(i.key_valid_until < clock_timestamp(), false) as expired,
       i.key_valid_until
  from bursar.instruction i
  join bursar.job j on j.id = i.job_id
 where i.idempotency_key = $1
   and i.kind = 'payout'
   for update of i;

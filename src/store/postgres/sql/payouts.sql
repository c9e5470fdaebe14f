-- Payouts, in the order of ids.
-- $1 run, $2 state, $3 merchant, $4 key (null: all), $5 above this id, $6 limit
select i.id, i.unit_id, i.run_id, r.job, i.election, i.generation, i.idempotency_key, i.merchant, i.currency, i.amount, i.value_date,
       i.state, i.reason, i.release, i.attempts, i.in_doubt, i.first_sent_at, i.key_valid_until, i.next_attempt_at, i.receiver,
       i.idempotent, i.external_reference, i.return_reference, i.last_error, i.term, i.sending_term, i.created_at, i.final_at, i.body
  from bursar.instruction i
  join bursar.run r on r.id = i.run_id
 where i.kind = 'payout'
   and ($1::bigint is null or i.run_id = $1)
   and ($2::text is null or i.state = $2)
   and ($3::text is null or i.merchant = $3)
   and ($4::text is null or i.idempotency_key = $4)
   and ($5::bigint is null or i.id > $5)
 order by i.id
 limit $6;

-- Payouts in a state that is not final, in the order of ids: found in the index of those, however many payouts there are.
-- ?1 run (null: all), ?2 state, ?3 merchant, ?4 key (null: all), ?5 above this id, ?6 limit
select i.id, i.run_id, r.job, i.election, i.idempotency_key, i.merchant, i.currency, i.amount, i.value_date,
       i.state, i.reason, i.release, i.attempts, i.in_doubt, i.first_sent_at, i.key_valid_until, i.next_attempt_at, i.receiver,
       i.external_reference, i.return_reference, i.last_error, i.term, i.created_at, i.final_at, i.body
  from instruction i indexed by instruction_unfinished
  join run r on r.id = i.run_id
 where i.kind = 'payout'
   and (?1 is null or i.run_id = ?1)
   and i.state in ('pending', 'sending', 'unknown', 'held')
   and i.state = ?2
   and (?3 is null or i.merchant = ?3)
   and (?4 is null or i.idempotency_key = ?4)
   and i.id > coalesce(?5, 0)
 order by i.id
 limit ?6;

-- One payout for an operator's act, with what that has to go by. Nobody else writes until the transaction's end.
-- Whether it surely was never sent can be said only where its run and its job both send: elsewhere somebody else takes payouts
-- from the store.
-- ?1 key
select i.id, i.state,
       i.first_sent_at is null and not i.in_doubt
           and coalesce(json_type(r.definition, '$.handler.ledger.payout.http') = 'object', 0)
           and coalesce(json_type(j.definition, '$.handler.ledger.payout.http') = 'object', 0) as never_sent,
       coalesce(i.key_valid_until < (select now from clock), 0) as expired,
       i.key_valid_until
  from instruction i
  join run r on r.id = i.run_id
  join job j on j.id = i.job_id
 where i.idempotency_key = ?1
   and i.kind = 'payout';

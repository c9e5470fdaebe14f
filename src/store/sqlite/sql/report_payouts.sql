-- The payouts of a run, in the order of ids, with how many there are.
-- ?1 run, ?2 limit
select i.idempotency_key, i.merchant, i.currency, i.amount, i.value_date, i.external_reference, i.return_reference, i.state, i.reason,
       (select count(*) from instruction c where c.run_id = ?1 and c.kind = 'payout') as payouts
  from instruction i
 where i.run_id = ?1 and i.kind = 'payout'
 order by i.id
 limit ?2;

-- Payouts written by a run, per currency.
-- $1 run
select i.currency, sum(i.amount)::text as amount
  from bursar.instruction i
 where i.run_id = $1 and i.kind = 'payout'
 group by i.currency
 order by i.currency;

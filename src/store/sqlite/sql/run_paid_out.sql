-- Payouts written by a run, per currency, summed in halves of 32 bits.
-- ?1 run
select i.currency, sum(i.amount >> 32) as amount_high, sum(i.amount & 4294967295) as amount_low
  from instruction i
 where i.run_id = ?1 and i.kind = 'payout'
 group by i.currency
 order by i.currency;

-- Audit: open money per currency, summed in halves of 32 bits.
select e.currency, sum((e.amount >> 32) - (e.fee >> 32)) as amount_high, sum((e.amount & 4294967295) - (e.fee & 4294967295)) as amount_low
  from entry e
 where e.unit_id is null and e.withdrawn_at is null
 group by e.currency
 order by e.currency;

-- Payouts that a bank statement is compared with: those of its keys and references, and those paid in its days.
-- ?1 keys, ?2 references, ?3 from, ?4 to, ?5 limit
select i.idempotency_key, i.merchant, i.currency, i.amount, i.value_date, i.external_reference, i.return_reference, i.state, i.reason
  from instruction i
 where i.kind = 'payout'
   and (i.idempotency_key in (select value from json_each(?1))
        or i.external_reference in (select value from json_each(?2))
        or i.return_reference in (select value from json_each(?2))
        or (i.state in ('paid', 'returned') and i.value_date between ?3 and ?4))
 order by i.id
 limit ?5;

-- Audit: open money per currency.
select e.currency, sum(e.amount - e.fee)::text as amount
  from bursar.entry e
 where e.unit_id is null and e.withdrawn_at is null
 group by e.currency
 order by e.currency;

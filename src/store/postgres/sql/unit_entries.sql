-- What a unit bound, by source, carries apart. A sum of bigint is numeric: read as text.
-- $1 unit
select e.source, e.kind = 'carry' as carries, e.currency, count(*) as entries, sum(e.amount)::text as amount, sum(e.fee)::text as fee
  from bursar.entry e
 where e.unit_id = $1
 group by e.source, e.kind = 'carry', e.currency
 order by e.kind = 'carry', e.source;

-- What a unit bound, by source, carries apart. Sums in halves of 32 bits: SQLite's own fail where they overflow.
-- ?1 unit
select e.source, e.kind = 'carry' as carries, e.currency, count(*) as entries,
       sum(e.amount >> 32) as amount_high, sum(e.amount & 4294967295) as amount_low,
       sum(e.fee >> 32) as fee_high, sum(e.fee & 4294967295) as fee_low
  from entry e
 where e.unit_id = ?1
 group by e.source, e.kind = 'carry', e.currency
 order by e.kind = 'carry', e.source;

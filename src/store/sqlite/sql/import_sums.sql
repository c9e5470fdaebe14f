-- What an import brought, per currency: its amounts summed in halves of 32 bits, so that no sum overflows.
-- ?1 import
select e.currency, count(*) as rows, sum(e.amount >> 32) as amount_high, sum(e.amount & 4294967295) as amount_low
  from entry e
 where e.import_id = ?1
 group by e.currency;

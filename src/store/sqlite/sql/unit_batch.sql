-- A unit's generation, currency, and the batch that ended it.
-- ?1 unit
select u.generation, u.currency, b.id, b.term, b.committed_at
  from unit u
  left join batch b on b.id = u.batch_id
 where u.id = ?1;

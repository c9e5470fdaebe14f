-- Instructions of given units, oldest first.
-- ?1 units, a JSON array of ids
select i.unit_id, i.idempotency_key, i.kind, i.state, i.reason, i.amount, i.currency, i.attempts, i.in_doubt, i.term
  from json_each(?1) g
 cross join instruction i
 where i.unit_id = g.value
 order by i.unit_id, i.id;

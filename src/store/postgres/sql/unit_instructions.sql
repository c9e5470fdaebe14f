-- Instructions of given units, oldest first.
-- $1 units
select i.unit_id, i.idempotency_key, i.kind, i.state, i.reason, i.amount, i.currency, i.attempts, i.in_doubt, i.term
  from bursar.instruction i
 where i.unit_id = any ($1::bigint[])
 order by i.unit_id, i.id;

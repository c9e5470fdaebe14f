-- Tries of a unit's instructions, oldest first.
-- $1 unit, $2 limit
select i.idempotency_key, y.attempt, y.asked, y.term, y.receiver, y.began_at, y.ended_at, y.outcome, y.detail
  from bursar.instruction i
  join bursar.instruction_try y on y.instruction_id = i.id
 where i.unit_id = $1
 order by i.id, y.attempt
 limit $2;

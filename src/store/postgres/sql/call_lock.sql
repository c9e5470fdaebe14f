-- Locks one unit of a run for an operator's act on its call, with what that has to go by. The gate is held shared.
-- The unit's lock is enough: whatever changes a call holds that of its unit.
-- $1 run, $2 key
select u.id as unit_id, u.state as unit_state, i.id, i.state, i.reason, i.in_doubt, i.attempts, i.idempotency_key, i.first_sent_at,
       r.definition, clock_timestamp() as now
  from bursar.unit u
  join bursar.run r on r.id = u.run_id
  left join bursar.instruction i on i.unit_id = u.id and i.kind = 'call' and i.generation = u.generation
 where u.run_id = $1
   and u.key = $2
   for update of u;

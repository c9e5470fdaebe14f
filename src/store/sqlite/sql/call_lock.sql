-- One unit of a run for an operator's act on its call, with what that has to go by. Nobody else writes until the transaction's end.
-- ?1 run, ?2 key
select u.id as unit_id, u.state as unit_state, i.id, i.state, i.in_doubt, i.idempotency_key, i.first_sent_at,
       r.definition, c.now
  from clock c, unit u
  join run r on r.id = u.run_id
  left join instruction i on i.unit_id = u.id and i.kind = 'call' and i.generation = u.generation
 where u.run_id = ?1
   and u.key = ?2;

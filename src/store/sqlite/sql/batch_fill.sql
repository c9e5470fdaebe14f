-- Fenced (begin), before a user's statement over a batch: the units that this transaction holds. ?1 units
insert into temp.bursar_batch (key, payload, unit_id, run_id)
select u.key, u.payload, u.id, u.run_id
  from unit u
 where u.id in (select value from json_each(?1)) and u.state = 'pending'
 order by u.id;

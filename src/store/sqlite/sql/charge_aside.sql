-- Fenced (record). How many of the charges that charge.sql will make set their unit aside.
-- ?1 run, ?2 election, ?3 charges: [unit, attempts expected, error, wait in microseconds (null: set aside)]
select count(distinct u.id) as aside
  from json_each(?3) g
  join unit u on u.id = g.value ->> 0
 where u.run_id = ?1
   and u.election = ?2
   and u.state = 'pending'
   and u.attempts = g.value ->> 1
   and g.value ->> 3 is null;

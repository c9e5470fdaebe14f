-- The run of a unit that a person has closed: complete once none of it is set aside any more. After call_resolve.sql.
-- $1 run
update bursar.run r
   set state = 'complete'
 where r.id = $1
   and r.state = 'complete_set_aside'
   and not r.was_planning
   and not exists (select from bursar.unit u where u.run_id = r.id and u.state in ('pending', 'set_aside'));

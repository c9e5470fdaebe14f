-- The run of a unit that a person has closed: complete once none of it is set aside any more. After call_unit.sql. ?1 run
update run
   set state = 'complete'
 where id = ?1
   and state = 'complete_set_aside'
   and not was_planning
   and not exists (select 1 from unit u where u.run_id = run.id and u.state in ('pending', 'set_aside'));

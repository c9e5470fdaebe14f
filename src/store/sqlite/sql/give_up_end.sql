-- Fenced (begin). Ends a run that is given up, once nothing of it is pending. One whose planning was broken off, or failed, is
-- planned again when it is retried. No row: units are pending. ?1 run, ?2 election
update run
   set was_planning = state = 'planning', state = 'complete_set_aside', finished_at = (select now from clock)
 where id = ?1
   and election = ?2
   and state in ('planning', 'open')
   and why is not null
   and not exists (select 1 from unit u where u.run_id = run.id and u.state = 'pending');

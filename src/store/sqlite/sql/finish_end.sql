-- Fenced (begin), with none of the run's units pending. Ends it. ?1 run, ?2 election
update run
   set state = case when exists (select 1 from unit u where u.run_id = run.id and u.state = 'set_aside')
                    then 'complete_set_aside' else 'complete' end,
       finished_at = (select now from clock)
 where id = ?1
   and election = ?2
   and state = 'open'
returning state;

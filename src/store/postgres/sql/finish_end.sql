-- Fenced (begin), with the run locked and none of its units pending. Ends it.
-- $1 run, $2 election
update bursar.run r
   set state = case when exists (select from bursar.unit u where u.run_id = r.id and u.state = 'set_aside')
                    then 'complete_set_aside' else 'complete' end,
       finished_at = clock_timestamp()
 where r.id = $1
   and r.election = $2
   and r.state = 'open'
returning r.state;

-- Fenced (begin). Ends a run that is given up, once nothing of it is pending. One whose planning was broken off, or failed, is
-- planned again when it is retried. No row: units are pending.
-- $1 run, $2 election
update bursar.run r
   set was_planning = r.state = 'planning', state = 'complete_set_aside', finished_at = clock_timestamp()
 where r.id = $1
   and r.election = $2
   and r.state in ('planning', 'open')
   and r.why is not null
   and not exists (select from bursar.unit u where u.run_id = r.id and u.state = 'pending');

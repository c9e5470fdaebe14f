-- Fenced (begin), after plan_query_set_aside.sql has locked the run. The units of a run whose planning failed: a part of what
-- was to be settled would stand in the way of the job's next run.
-- Safe because: a run that is planning was never worked on, so that nothing refers to its units.
-- $1 run, $2 election
delete from bursar.unit u where u.run_id = $1 and u.election = $2 and u.state = 'pending';

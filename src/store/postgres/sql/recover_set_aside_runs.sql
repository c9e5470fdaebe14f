-- Runs that killed too many leaders end. One whose planning was broken off is planned again when it is retried.
update bursar.run r
   set was_planning = r.state = 'planning', state = 'complete_set_aside', why = $2, finished_at = clock_timestamp()
 where r.id = any ($1) and r.state in ('planning', 'open');

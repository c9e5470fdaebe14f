-- The pending units of runs that killed too many leaders. The runs are locked.
update bursar.unit u
   set state = 'set_aside', last_error = $2, ended_at = clock_timestamp(), term = $3,
       xact = pg_current_xact_id()
 where u.run_id = any ($1) and u.state = 'pending';

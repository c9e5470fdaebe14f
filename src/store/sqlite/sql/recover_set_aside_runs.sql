-- Runs that killed too many leaders end. One whose planning was broken off is planned again when it is retried. Fenced.
-- ?1 runs, ?2 why
update run
   set was_planning = state = 'planning', state = 'complete_set_aside', why = ?2, finished_at = (select now from clock)
 where id in (select value from json_each(?1)) and state in ('planning', 'open');

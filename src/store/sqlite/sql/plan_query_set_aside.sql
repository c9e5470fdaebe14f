-- Fenced (begin). Ends a run that cannot be planned, with why; it is planned again when it is retried.
-- Safe because: only a run that is still planning is ended. ?1 run, ?2 election, ?3 why
update run
   set was_planning = 1, state = 'complete_set_aside', why = ?3, finished_at = (select now from clock)
 where id = ?1 and election = ?2 and state = 'planning';

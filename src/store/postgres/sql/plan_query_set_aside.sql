-- Fenced (begin). Ends a run that cannot be planned, with why; it is planned again when it is retried.
-- Safe because: only a run that is still planning is ended.
-- $1 run, $2 election, $3 why
update bursar.run r
   set was_planning = true, state = 'complete_set_aside', why = $3, finished_at = clock_timestamp()
 where r.id = $1 and r.election = $2 and r.state = 'planning';

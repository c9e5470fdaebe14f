-- The pending units of runs that killed too many leaders. Fenced. ?1 runs, ?2 error, ?3 term
update unit
   set state = 'set_aside', last_error = ?2, ended_at = (select now from clock), term = ?3,
       fenced_seq = (select value from fenced_seq)
 where run_id in (select value from json_each(?1)) and state = 'pending';

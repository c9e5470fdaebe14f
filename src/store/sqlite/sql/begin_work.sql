-- This term works on the run, so that a successor can count deaths. Fenced. ?1 election, ?2 term, ?3 run
update run set worked_term = ?2, worked_at = (select now from clock)
 where election = ?1 and id = ?3 and state in ('planning', 'open') and worked_term is not ?2;

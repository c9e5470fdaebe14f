-- What the unit of a call becomes by a person's word, after call_resolve.sql. ?1 unit, ?2 new state, ?3 batch, ?4 term
update unit
   set state = ?2, batch_id = ?3, term = ?4, fenced_seq = (select value from fenced_seq), next_attempt_at = null,
       ended_at = (select now from clock)
 where id = ?1 and state = 'set_aside';

-- Fenced (begin). One page of the pending units of a run that killed too many leaders, in the order of ids, past a keyset cursor.
-- Safe because: nothing of a run that is given up is claimed, so that a page may be left at any place and gone on with.
-- ?1 run, ?2 election, ?3 cursor, ?4 limit, ?5 error, ?6 term
update unit
   set state = 'set_aside', last_error = ?5, ended_at = (select now from clock), term = ?6,
       fenced_seq = (select value from fenced_seq)
 where id in (select u.id from unit u
               where u.run_id = ?1 and u.election = ?2 and u.state = 'pending' and u.id > ?3
               order by u.id
               limit ?4)
returning id;

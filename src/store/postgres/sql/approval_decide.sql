-- Decides a request, locked. Safe because: it names the state that was found, and a trigger compares the role and the
-- transaction that decide with those that are there.
-- $1 request, $2 state, $3 user, $4 host, $5 reason, $6 act
update bursar.approval a
   set state = $2, decided_role = session_user, decided_user = $3, decided_host = $4, decided_at = clock_timestamp(),
       decided_reason = $5, decided_act_id = $6, decided_xact = pg_current_xact_id()
 where a.id = $1 and a.state = 'waiting';

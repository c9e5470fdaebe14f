-- Marks the server session behind a connection. Simple protocol.
select set_config('bursar.session_mark', gen_random_uuid()::text, false) as mark;

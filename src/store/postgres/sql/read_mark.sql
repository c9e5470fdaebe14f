-- The mark of the server session behind a connection, if it has one. Simple protocol.
select current_setting('bursar.session_mark', true) as mark;

-- Settings of the coordinator's sessions. Simple protocol. Every time-out is below the deadline of an attempt (one second), so
-- that what its caller has given up does not go on for long; only the server's own keeps an idle transaction from holding rows.
set default_transaction_isolation = 'read committed';
set statement_timeout = '800ms';
set lock_timeout = '500ms';
set idle_in_transaction_session_timeout = '2s';

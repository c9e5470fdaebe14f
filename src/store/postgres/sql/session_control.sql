-- Settings of a session outside tenures. Simple protocol; one row, from the last statement.
set default_transaction_isolation = 'read committed';
set statement_timeout = '5s';
set lock_timeout = '2s';
set idle_in_transaction_session_timeout = '10s';
select pg_backend_pid() as pid,
       (select a.backend_start from pg_stat_activity a where a.pid = pg_backend_pid()) as started;

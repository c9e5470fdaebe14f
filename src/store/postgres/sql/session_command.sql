-- Settings of a command's own session: its one transaction may be long, its waits for locks may not. Between two statements it
-- only computes: one that is idle for longer is stopped, or its host is gone, and a successor may be waiting for its locks.
set default_transaction_isolation = 'read committed';
set statement_timeout = 0;
set lock_timeout = '30s';
set idle_in_transaction_session_timeout = '20s';
select pg_backend_pid() as pid,
       (select a.backend_start from pg_stat_activity a where a.pid = pg_backend_pid()) as started;

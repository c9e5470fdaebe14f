-- Settings of a tenure's session: a paused replica holds nothing for longer than these. Milliseconds as text.
-- Without sequential scans: right after a large import there are no statistics yet, a table counts as small, and a batch was
-- planned as thousands of scans of all entries (minutes instead of milliseconds). Every statement of a tenure has its index.
select pg_backend_pid() as pid,
       (select a.backend_start from pg_stat_activity a where a.pid = pg_backend_pid()) as started,
       set_config('default_transaction_isolation', 'read committed', false),
       set_config('statement_timeout', $1, false),
       set_config('lock_timeout', $2, false),
       set_config('idle_in_transaction_session_timeout', $3, false),
       set_config('enable_seqscan', 'off', false);

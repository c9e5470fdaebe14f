-- Ends sessions by pid and start (a pid alone may be another session's by now). One row per session that is still there.
select a.pid, a.backend_start as started, pg_terminate_backend(a.pid) as signalled
  from pg_stat_activity a
  join unnest($1::int[], $2::timestamptz[]) as mine (pid, started)
    on mine.pid = a.pid and mine.started = a.backend_start;

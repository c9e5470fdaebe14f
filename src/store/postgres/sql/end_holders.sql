-- Ends the sessions that hold an election's advisory lock shared, and those of $2/$3 (pid, start) that hold it exclusively.
-- A waiter is never ended. One row per holder found.
select a.pid,
       a.backend_start as started,
       a.application_name as application,
       l.mode = 'ShareLock' as shared,
       case when l.mode = 'ShareLock'
              or exists (select from unnest($2::int[], $3::timestamptz[]) as late (pid, started)
                          where late.pid = a.pid and late.started = a.backend_start)
            then pg_terminate_backend(a.pid) end as signalled
  from (select bursar.gate($1) as key) g
  join pg_locks l on l.locktype = 'advisory' and l.objsubid = 1
                 and l.classid = ((g.key >> 32) & 4294967295)::oid
                 and l.objid = (g.key & 4294967295)::oid
                 and l.database = (select d.oid from pg_database d where d.datname = current_database())
  join pg_stat_activity a on a.pid = l.pid
 where l.granted and l.pid <> pg_backend_pid();

-- Ends the sessions that hold an election's advisory lock shared, and those of $2/$3 (pid, transaction) that hold it exclusively,
-- as far as this role may: the rule is that of pg_terminate_backend (as in peers_out_of_reach.sql), which fails the statement for
-- all of them over one that it may not end. A waiter is never ended, nor whoever got the lock after the advance: there is a row per
-- holder, and an end for it, only where the same look at the locks has somebody wait for it exclusively.
-- A holder is told from a later one with its pid by its transaction's virtual id: unlike a session's start every role is shown it.
select h.pid, h.transaction, h.application, h.role, h.shared, h.due, h.permitted,
       case when h.due and h.permitted then pg_terminate_backend(h.pid) end as signalled
  from (select l.pid,
               l.virtualtransaction as transaction,
               a.application_name as application,
               r.rolname::text as role,
               l.mode = 'ShareLock' as shared,
               l.mode = 'ShareLock'
                   or exists (select from unnest($2::int[], $3::text[]) as late (pid, transaction)
                               where late.pid = l.pid and late.transaction = l.virtualtransaction) as due,
               coalesce(case when r.rolsuper then (select me.rolsuper from pg_roles me where me.rolname = current_user)
                             else pg_has_role(current_user, r.oid, 'USAGE')
                                  or pg_has_role(current_user, 'pg_signal_backend', 'USAGE') end, false) as permitted
          from (select l.*, bool_or(l.mode = 'ExclusiveLock' and not l.granted) over () as awaited
                  from (select bursar.gate($1) as key) g
                  join pg_locks l on l.locktype = 'advisory' and l.objsubid = 1
                                 and l.classid = ((g.key >> 32) & 4294967295)::oid
                                 and l.objid = (g.key & 4294967295)::oid
                                 and l.database = (select d.oid from pg_database d where d.datname = current_database())) l
          join pg_stat_activity a on a.pid = l.pid
          left join pg_roles r on r.oid = a.usesysid
         where l.granted and l.awaited and l.pid <> pg_backend_pid()) h;

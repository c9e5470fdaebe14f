-- Roles that lead, or led last, whose sessions this role may not end (the rule of pg_terminate_backend).
select distinct h.role
  from bursar.term_history h
  join bursar.fence f on f.election = h.election and f.term = h.term
  join pg_roles r on r.rolname = h.role
 where not (case when r.rolsuper then (select me.rolsuper from pg_roles me where me.rolname = current_user)
                 else pg_has_role(current_user, r.oid, 'USAGE') or pg_has_role(current_user, 'pg_signal_backend', 'USAGE') end)
 order by h.role;

-- Locks a request, so that it is decided once; with the role that decides.
-- $1 request
select a.request, a.found, a.reason, a.state, a.role, session_user::text as decides
  from bursar.approval a
 where a.id = $1
   for update of a;

-- Requests for a second pair of eyes, newest first.
-- $1 only this one (null: all), $2 whether also those that are decided, $3 limit
select a.id, a.request, a.found, a.reason, a.state, a.role, a.os_user || '@' || a.host as by, a.at,
       a.decided_role, a.decided_user || '@' || a.decided_host as decided_by, a.decided_at, a.decided_reason
  from bursar.approval a
 where ($1::bigint is null or a.id = $1)
   and ($2 or a.state = 'waiting')
 order by a.id desc
 limit $3;

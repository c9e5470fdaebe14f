-- Operators' acts, newest first.
-- ?1 limit
select a.at, a.action, a.target, a.reason, a.os_user || '@' || a.host as by, a.role, a.term
  from operator_act a
 order by a.id desc
 limit ?1;

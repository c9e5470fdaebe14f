-- Replicas that operators keep from leading, whether they are there or not, with the act that did it.
select c.replica, c.at, a.reason, a.os_user || '@' || a.host as by
  from bursar.cordon c
  join bursar.operator_act a on a.id = c.act_id
 order by c.replica
 limit 1000;

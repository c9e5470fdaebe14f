-- Operators' acts on an election that found this term in force, and cordons of the replica while it led it, oldest first.
-- ?1 election, ?2 term, ?3 tenure id, ?4 limit
select a.at, a.action, a.target, a.reason, a.os_user || '@' || a.host as by, a.role, a.term
  from operator_act a
 where (a.election = ?1 and a.term = ?2)
    or (a.action = 'cordon'
        and exists (select 1
                      from term_history t
                     where t.election = ?1 and t.term = ?2 and t.tenure_id = ?3 and t.replica = a.target
                       and t.accepted_at < a.at and (t.ended_at is null or a.at <= t.ended_at)))
 order by a.id
 limit ?4;

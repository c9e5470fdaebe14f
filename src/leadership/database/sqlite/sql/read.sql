-- The election in one snapshot; a leader on a lease that lapsed by the clock read before counts as absent, and as one step of
-- the revision.
select s.revision + (s.leader is not null and not s.lives) as read_at, s.term as term, s.term_revision as term_revision,
       case when s.lives then s.leader end as leader,
       case when s.lives then s.leader_lease end as leader_lease,
       case when s.lives then s.leader_revision end as leader_revision
  from (select e.*, e.leader is not null
                    and (e.leader_lease = 0 or coalesce(l.boot_id = ?2 and l.expires_ms > ?3, 0)) as lives
          from election e left join lease l on l.id = e.leader_lease
         where e.name = ?1) s;

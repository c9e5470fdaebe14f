-- Accepted terms, newest first, each with the term before it and with what was committed under it.
-- ?1 election or null, ?2 term or null, ?3 limit
select h.election, h.term, h.tenure_id, h.replica, h.host, h.version, h.accepted_at, h.worked_at, h.ended_at, h.end_reason,
       h.stood_at, h.won_at, h.handed_over, h.taken_runs, h.taken_set_aside, h.taken_unknown,
       exists (select 1
                 from fence f
                where f.election = h.election and f.term = h.term and f.tenure_id = h.tenure_id) as in_force,
       p.term as before_term, p.replica as before_replica, p.ended_at as before_ended_at, p.end_reason as before_reason,
       (select count(*) from run r
         where r.election = h.election and r.opened_term = h.term
           and r.state not in ('skipped', 'coalesced', 'missed')) as runs_opened,
       (select count(*) from run r
         where r.election = h.election and r.opened_term = h.term
           and r.state in ('skipped', 'coalesced', 'missed')) as ticks_without_run,
       (select count(*) from batch b where b.election = h.election and b.term = h.term) as batches,
       (select coalesce(sum(b.settled), 0) from batch b where b.election = h.election and b.term = h.term) as settled,
       (select coalesce(sum(b.carried), 0) from batch b where b.election = h.election and b.term = h.term) as carried,
       (select coalesce(sum(b.empty), 0) from batch b where b.election = h.election and b.term = h.term) as empty,
       (select coalesce(sum(b.set_aside), 0) from batch b where b.election = h.election and b.term = h.term) as set_aside,
       (select coalesce(sum(b.instructions), 0) from batch b where b.election = h.election and b.term = h.term) as instructions,
       (select count(*) from journal j
         where j.election = h.election and j.term = h.term and j.kind <> 'settle' and j.kind = 'paid') as paid,
       (select count(*) from journal j
         where j.election = h.election and j.term = h.term and j.kind <> 'settle' and j.kind = 'rejected') as rejected,
       (select count(*) from journal j
         where j.election = h.election and j.term = h.term and j.kind <> 'settle' and j.kind = 'returned') as returned
  from (select t.*
          from term_history t
         where (?1 is null or t.election = ?1) and (?2 is null or t.term = ?2)
         order by t.accepted_at desc, t.election, t.term desc
         limit ?3) h
  left join term_history p on p.rowid = (
       select e.rowid
         from term_history e
        where e.election = h.election and e.term < h.term
        order by e.term desc, e.accepted_at desc
        limit 1)
 order by h.accepted_at desc, h.election, h.term desc;

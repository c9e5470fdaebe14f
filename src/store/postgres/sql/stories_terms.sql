-- Accepted terms, newest first, each with the term before it and with what was committed under it.
-- $1 election or null, $2 term or null, $3 limit
select h.election, h.term, h.tenure_id, h.replica, h.host, h.version, h.accepted_at, h.worked_at, h.ended_at, h.end_reason,
       h.stood_at, h.won_at, h.handed_over, h.taken_runs, h.taken_set_aside, h.taken_unknown,
       exists (select
                 from bursar.fence f
                where f.election = h.election and f.term = h.term and f.tenure_id = h.tenure_id) as in_force,
       p.term as before_term, p.replica as before_replica, p.ended_at as before_ended_at, p.end_reason as before_reason,
       r.opened as runs_opened, r.others as ticks_without_run,
       b.batches, b.settled, b.carried, b.empty, b.set_aside, b.instructions,
       j.paid, j.rejected, j.returned
  from (select t.*
          from bursar.term_history t
         where ($1::text is null or t.election = $1) and ($2::bigint is null or t.term = $2)
         order by t.accepted_at desc, t.election, t.term desc
         limit $3) h
  left join lateral (
       select e.term, e.replica, e.ended_at, e.end_reason
         from bursar.term_history e
        where e.election = h.election and e.term < h.term
        order by e.term desc, e.accepted_at desc
        limit 1) p on true
 cross join lateral (
       select count(*) filter (where u.state not in ('skipped', 'coalesced', 'missed')) as opened,
              count(*) filter (where u.state in ('skipped', 'coalesced', 'missed')) as others
         from bursar.run u
        where u.election = h.election and u.opened_term = h.term) r
 cross join lateral (
       select count(*) as batches, coalesce(sum(c.settled), 0)::bigint as settled, coalesce(sum(c.carried), 0)::bigint as carried,
              coalesce(sum(c.empty), 0)::bigint as empty, coalesce(sum(c.set_aside), 0)::bigint as set_aside,
              coalesce(sum(c.instructions), 0)::bigint as instructions
         from bursar.batch c
        where c.election = h.election and c.term = h.term) b
 cross join lateral (
       select count(*) filter (where o.kind = 'paid') as paid, count(*) filter (where o.kind = 'rejected') as rejected,
              count(*) filter (where o.kind = 'returned') as returned
         from bursar.journal o
        where o.election = h.election and o.term = h.term and o.kind <> 'settle') j
 order by h.accepted_at desc, h.election, h.term desc;

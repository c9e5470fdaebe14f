-- Runs of an election that are planning or open, by job and state, with their units.
-- $1 election
select r.job, r.state, count(*) as runs,
       count(*) filter (where r.deadline_at < clock_timestamp()) as overdue,
       sum(u.fresh + u.tried)::bigint as pending,
       sum(u.set_aside)::bigint as set_aside,
       sum(b.settled)::bigint as settled,
       sum(b.carried)::bigint as carried,
       sum(b.empty)::bigint as empty,
       coalesce(extract(epoch from clock_timestamp() - min(r.opened_at) filter (where u.fresh + u.tried > 0)), 0)::bigint as oldest_seconds
  from bursar.run r
 cross join lateral (
       select (select count(*) from bursar.unit u where u.run_id = r.id and u.state = 'pending' and u.attempts = 0) as fresh,
              (select count(*) from bursar.unit u where u.run_id = r.id and u.state = 'pending' and u.attempts > 0) as tried,
              (select count(*) from bursar.unit u where u.run_id = r.id and u.state = 'set_aside') as set_aside) u
 cross join lateral (
       select coalesce(sum(b.settled), 0) as settled, coalesce(sum(b.carried), 0) as carried, coalesce(sum(b.empty), 0) as empty
         from bursar.batch b
        where b.run_id = r.id) b
 where r.election = $1
   and r.state in ('planning', 'open')
 group by r.job, r.state
 order by r.job, r.state;

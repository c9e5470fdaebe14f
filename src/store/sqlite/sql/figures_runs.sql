-- Runs of an election that are planning or open, by job and state, with their units.
-- ?1 election
with counted as materialized (
    select r.job, r.state, r.opened_at, r.deadline_at,
           (select count(*) from unit u where u.run_id = r.id and u.state = 'pending') as pending,
           (select count(*) from unit u where u.run_id = r.id and u.state = 'set_aside') as set_aside,
           (select coalesce(sum(b.settled), 0) from batch b where b.run_id = r.id) as settled,
           (select coalesce(sum(b.carried), 0) from batch b where b.run_id = r.id) as carried,
           (select coalesce(sum(b.empty), 0) from batch b where b.run_id = r.id) as empty
      from run r
     where r.election = ?1
       and r.state in ('planning', 'open')
)
select c.job, c.state, count(*) as runs,
       count(*) filter (where c.deadline_at < (select c.now from clock c)) as overdue,
       sum(c.pending) as pending,
       sum(c.set_aside) as set_aside,
       sum(c.settled) as settled,
       sum(c.carried) as carried,
       sum(c.empty) as empty,
       max(coalesce(((select c.now from clock c) - min(c.opened_at) filter (where c.pending > 0)) / 1000000, 0), 0) as oldest_seconds
  from counted c
 group by c.job, c.state
 order by c.job, c.state;

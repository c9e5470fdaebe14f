-- Runs, newest due first, with their units by state. What is pending or set aside is counted in small partial indexes; what
-- ended for good is the sum over the batches. The page is picked first, so that nothing is counted for other runs.
-- ?1 job (null: all), ?2 state (null: all), ?3 below this run in the order of the list,
-- ?4 only this run, ?5 limit, ?6 whether only runs that are planning or open
with page as materialized (
    select o.id
      from (select r.id
              from run r indexed by run_open
             where ?6
               and r.state in ('planning', 'open')
               and (?1 is null or r.job = ?1)
               and (?2 is null or r.state = ?2)
               and (?3 is null or (r.due_at, r.id) < (select s.due_at, s.id from run s where s.id = ?3))
             order by r.due_at desc, r.id desc
             limit ?5) o
     union all
    select a.id
      from (select r.id
              from run r
             where not ?6
               and (?1 is null or r.job = ?1)
               and (?2 is null or r.state = ?2)
               and (?3 is null or (r.due_at, r.id) < (select s.due_at, s.id from run s where s.id = ?3))
               and (?4 is null or r.id = ?4)
             order by r.due_at desc, r.id desc
             limit ?5) a
)
select r.id, r.job, r.election, r.kind, r.tick, r.due_at, r.state, r.why, r.opened_term, r.opened_at, r.finished_at,
       r.cutoff_at, r.value_date, r.fingerprint, r.request_id, r.deaths,
       r.definition ->> '$.timing.business_days.calendar.fingerprint' as calendar_fingerprint,
       coalesce(r.state in ('planning', 'open') and r.deadline_at < (select c.now from clock c), 0) as overdue,
       max((r.opened_at - r.due_at + 500) / 1000, 0) as lateness_ms,
       (select count(*) from unit u where u.run_id = r.id and u.state = 'pending') as pending,
       (select count(*) from unit u where u.run_id = r.id and u.state = 'set_aside') as set_aside,
       (select coalesce(sum(b.settled), 0) from batch b where b.run_id = r.id) as settled,
       (select coalesce(sum(b.carried), 0) from batch b where b.run_id = r.id) as carried,
       (select coalesce(sum(b.empty), 0) from batch b where b.run_id = r.id) as empty
  from page p
  join run r on r.id = p.id
 order by r.due_at desc, r.id desc;

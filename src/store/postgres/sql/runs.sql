-- Runs, newest due first, with their units by state. What is pending or set aside is counted in small partial indexes; what
-- ended for good is the sum over the batches. The page is picked first, along an index and without the definitions, so that
-- nothing is read of or counted for other runs.
-- $1 job (null: all), $2 state (null: all), $3 below this run in the order of the list,
-- $4 only this run, $5 limit, $6 whether only runs that are planning or open
with page as materialized (
    select r.id
      from bursar.run r
     where ($1::text is null or r.job = $1)
       and ($2::text is null or r.state = $2)
       and ($3::bigint is null or (r.due_at, r.id) < (select s.due_at, s.id from bursar.run s where s.id = $3))
       and ($4::bigint is null or r.id = $4)
       and (not $6 or r.state in ('planning', 'open'))
     order by r.due_at desc, r.id desc
     limit $5
)
select r.id, r.job, r.election, r.kind, r.tick, r.due_at, r.state, r.why, r.opened_term, r.opened_at, r.finished_at,
       r.cutoff_at, r.value_date, r.fingerprint, r.request_id, r.deaths,
       r.definition #>> '{timing,business_days,calendar,fingerprint}' as calendar_fingerprint,
       coalesce(r.state in ('planning', 'open') and r.deadline_at < clock_timestamp(), false) as overdue,
       greatest((extract(epoch from r.opened_at - r.due_at) * 1000)::bigint, 0) as lateness_ms,
       (select count(*) from bursar.unit u where u.run_id = r.id and u.state = 'pending' and u.attempts = 0)
       + (select count(*) from bursar.unit u where u.run_id = r.id and u.state = 'pending' and u.attempts > 0) as pending,
       (select count(*) from bursar.unit u where u.run_id = r.id and u.state = 'set_aside') as set_aside,
       b.settled, b.carried, b.empty
  from page p
  join bursar.run r on r.id = p.id
 cross join lateral (
       select coalesce(sum(b.settled), 0)::bigint as settled, coalesce(sum(b.carried), 0)::bigint as carried,
              coalesce(sum(b.empty), 0)::bigint as empty
         from bursar.batch b
        where b.run_id = r.id) b
 order by r.due_at desc, r.id desc;

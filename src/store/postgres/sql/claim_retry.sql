-- Fenced (begin). Claims units of a run that were tried before and whose wait is over by the store's clock.
-- The longest wait first, so that a page is fair; the caller puts the rows into the order of ids. Safe as claim_fresh.sql:
-- a lock is never waited for, so no order of locking can deadlock.
-- $1 run, $2 election, $3 limit
select u.id, u.attempts, u.generation, u.key, u.merchant, u.currency
  from bursar.unit u
 where u.run_id = $1
   and u.election = $2
   and u.state = 'pending'
   and u.attempts > 0
   and u.next_attempt_at <= clock_timestamp()
   and exists (select from bursar.run r where r.id = $1 and r.election = $2 and r.state = 'open' and r.why is null)
 order by u.next_attempt_at
 limit $3
   for update of u skip locked;

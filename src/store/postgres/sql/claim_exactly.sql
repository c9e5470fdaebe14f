-- Fenced (begin). Claims given units of a run, as far as they are still pending: halves of a batch that failed.
-- Waits for a unit that is locked; in the order of ids, as every other statement that locks units.
-- $1 run, $2 election, $3 units
select u.id, u.attempts, u.generation, u.key, u.merchant, u.currency
  from bursar.unit u
 where u.run_id = $1
   and u.election = $2
   and u.id = any ($3::bigint[])
   and u.state = 'pending'
   and exists (select from bursar.run r where r.id = $1 and r.election = $2 and r.state = 'open' and r.why is null)
 order by u.id
   for update of u;

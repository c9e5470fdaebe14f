-- Fenced (begin). Claims units of a run that were never tried, past a keyset cursor, in the order of ids.
-- Safe because: the row lock is the claim, it lasts until the transaction's end, and under READ COMMITTED a row that another
-- batch ended meanwhile is looked at again and left out. Those that another batch holds are passed over, not waited for.
-- $1 run, $2 election, $3 cursor, $4 limit
select u.id, u.attempts, u.generation, u.key, u.merchant, u.currency
  from bursar.unit u
 where u.run_id = $1
   and u.election = $2
   and u.state = 'pending'
   and u.attempts = 0
   and u.id > $3
   and exists (select from bursar.run r where r.id = $1 and r.election = $2 and r.state = 'open' and r.why is null)
 order by u.id
 limit $4
   for update of u skip locked;

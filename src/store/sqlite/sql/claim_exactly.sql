-- Fenced (begin). Claims given units of a run, as far as they are still pending: halves of a batch that failed.
-- Safe as claim_fresh.sql. ?1 run, ?2 election, ?3 units
select u.id, u.attempts, u.generation, u.key, u.merchant, u.currency
  from unit u
 where u.id in (select value from json_each(?3))
   and u.run_id = ?1
   and u.election = ?2
   and u.state = 'pending'
   and exists (select 1 from run r where r.id = ?1 and r.election = ?2 and r.state = 'open' and r.why is null)
 order by u.id;

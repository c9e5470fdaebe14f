-- Fenced (begin). Claims units of a run that were never tried, past a keyset cursor, in the order of ids.
-- Safe because: the file's write lock is the claim, from before this was read until the transaction's end.
-- ?1 run, ?2 election, ?3 cursor, ?4 limit
select u.id, u.attempts, u.generation, u.key, u.merchant, u.currency
  from unit u
 where u.run_id = ?1
   and u.election = ?2
   and u.state = 'pending'
   and u.attempts = 0
   and u.id > ?3
   and exists (select 1 from run r where r.id = ?1 and r.election = ?2 and r.state = 'open' and r.why is null)
 order by u.id
 limit ?4;

-- Locks what a release of a run's payouts lets go, in the order of ids, and answers their keys. The gate is held shared.
-- $1 run, $2 keys (empty: all that wait)
select i.idempotency_key
  from bursar.instruction i
 where i.run_id = $1
   and i.kind = 'payout'
   and ((i.release = 'waiting' and i.state = 'pending' and (cardinality($2::text[]) = 0 or i.idempotency_key = any ($2)))
        or (i.state = 'held' and i.reason in ('over_limit', 'approval') and i.idempotency_key = any ($2)))
 order by i.id
   for update of i;

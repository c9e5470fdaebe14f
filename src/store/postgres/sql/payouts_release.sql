-- Releases payouts of a run: those that wait for it, or those that are named, also where they are held for their amount.
-- Safe because: the gate is held shared, instructions are locked in the order of ids, and only what is pending or held for
-- this is touched.
-- $1 run, $2 keys (empty: all that wait)
with chosen as materialized (
    select i.id
      from bursar.instruction i
     where i.run_id = $1
       and i.kind = 'payout'
       and ((i.release = 'waiting' and i.state = 'pending' and (cardinality($2::text[]) = 0 or i.idempotency_key = any ($2)))
            or (i.state = 'held' and i.reason = 'over_limit' and i.idempotency_key = any ($2)))
     order by i.id
       for update of i
)
update bursar.instruction i
   set release = 'released',
       state = case when i.in_doubt then 'unknown' else 'pending' end,
       reason = null,
       next_attempt_at = null
  from chosen c
 where i.id = c.id;

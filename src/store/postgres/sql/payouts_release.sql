-- Releases payouts of a run: those that wait for it, or those that are named, also where they are held for
-- their amount, or because others may have taken them from the store: those are cleared by it. Those of a merchant on hold are
-- held for that from now on.
-- Safe because: the gate is held shared, instructions are locked in the order of ids, and only what is pending or held for
-- this is touched; a hold that is relied on stands until this transaction ends, as payouts_hold.sql says. Answers the keys.
-- $1 run, $2 keys (empty: all that wait)
with chosen as materialized (
    select i.id
      from bursar.instruction i
     where i.run_id = $1
       and i.kind = 'payout'
       and ((i.release = 'waiting' and i.state = 'pending' and (cardinality($2::text[]) = 0 or i.idempotency_key = any ($2)))
            or (i.state = 'held' and i.reason in ('over_limit', 'approval') and i.idempotency_key = any ($2)))
     order by i.id
       for update of i
), standing as materialized (
    select h.merchant
      from bursar.merchant_hold h
     where h.merchant in (select o.merchant from chosen c join bursar.instruction o using (id))
     order by h.merchant
       for key share of h
)
update bursar.instruction i
   set release = 'released',
       cleared = i.cleared or coalesce(i.reason = 'approval', false),
       state = case when h.merchant is not null then 'held' when i.in_doubt then 'unknown' else 'pending' end,
       reason = case when h.merchant is not null then 'merchant' end,
       next_attempt_at = null
  from chosen c
  join bursar.instruction o using (id)
  left join standing h on h.merchant = o.merchant
 where i.id = c.id
returning i.idempotency_key;

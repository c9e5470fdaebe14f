-- What was held for a merchant is as it was before; a doubt stays. Every gate is held shared.
-- Safe because: a statement of its own after merchant_release.sql, so that it sees what was held while that one waited; instructions are
-- locked in the order of ids.
-- $1 merchant
with chosen as materialized (
    select i.id
      from bursar.instruction i
     where i.merchant = $1 and i.kind = 'payout' and i.state = 'held' and i.reason = 'merchant'
     order by i.id
       for update of i
)
update bursar.instruction i
   set state = case when i.in_doubt then 'unknown' else 'pending' end, reason = null, next_attempt_at = null
  from chosen c
 where i.id = c.id;

-- Ends a merchant's hold; what was held for it is as it was before. Every gate is held shared.
-- $1 merchant
with gone as (
    delete from bursar.merchant_hold h where h.merchant = $1 returning 1
), chosen as materialized (
    select i.id
      from bursar.instruction i
     where i.merchant = $1 and i.kind = 'payout' and i.state = 'held' and i.reason = 'merchant'
     order by i.id
       for update of i
), freed as (
    update bursar.instruction i
       set state = case when i.in_doubt then 'unknown' else 'pending' end, reason = null, next_attempt_at = null
      from chosen c
     where i.id = c.id and exists (select from gone)
    returning 1
)
select (select count(*) from gone) as gone, (select count(*) from freed) as freed;

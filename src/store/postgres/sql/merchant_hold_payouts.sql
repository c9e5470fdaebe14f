-- What is not on the wire of a merchant that has just been put on hold is held. What is taken after this finds the hold itself.
-- Safe because: every gate is held shared, instructions are locked in the order of ids, and a doubt stays.
-- $1 merchant
with chosen as materialized (
    select i.id
      from bursar.instruction i
     where i.merchant = $1 and i.kind = 'payout' and i.state in ('pending', 'unknown')
     order by i.id
       for update of i
)
update bursar.instruction i
   set state = 'held', reason = 'merchant', next_attempt_at = null
  from chosen c
 where i.id = c.id;

-- Releases payouts of a run: those that wait for it, or those that are named, also where they are held for
-- their amount, or because others may have taken them from the store: those are cleared by it. Those of a merchant on hold are
-- held for that from now on.
-- Safe because: only what is pending or held for this is touched, and nobody else writes until the transaction's end.
-- Answers the keys.
-- ?1 run, ?2 keys (empty: all that wait)
update instruction
   set release = 'released',
       cleared = cleared or coalesce(reason = 'approval', 0),
       state = case when exists (select 1 from merchant_hold h where h.merchant = instruction.merchant) then 'held'
                    when in_doubt then 'unknown' else 'pending' end,
       reason = case when exists (select 1 from merchant_hold h where h.merchant = instruction.merchant) then 'merchant' end,
       next_attempt_at = null
 where run_id = ?1
   and kind = 'payout'
   and ((release = 'waiting' and state = 'pending' and (?2 = '[]' or idempotency_key in (select value from json_each(?2))))
        or (state = 'held' and reason in ('over_limit', 'approval') and idempotency_key in (select value from json_each(?2))))
returning idempotency_key;

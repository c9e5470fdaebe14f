-- Releases payouts of a run: those that wait for it, or those that are named, also where they are held for their amount.
-- Safe because: only what is pending or held for this is touched, and nobody else writes until the transaction's end.
-- ?1 run, ?2 keys (empty: all that wait)
update instruction
   set release = 'released',
       state = case when in_doubt then 'unknown' else 'pending' end,
       reason = null,
       next_attempt_at = null
 where run_id = ?1
   and kind = 'payout'
   and ((release = 'waiting' and state = 'pending' and (?2 = '[]' or idempotency_key in (select value from json_each(?2))))
        or (state = 'held' and reason = 'over_limit' and idempotency_key in (select value from json_each(?2))));

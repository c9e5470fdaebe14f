-- What was held for a merchant is as it was before, after the hold is gone; a doubt stays. ?1 merchant
update instruction
   set state = case when in_doubt then 'unknown' else 'pending' end, reason = null, next_attempt_at = null
 where merchant = ?1 and kind = 'payout' and state = 'held' and reason = 'merchant';

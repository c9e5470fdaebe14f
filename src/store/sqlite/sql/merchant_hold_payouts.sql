-- What is not on the wire of a merchant that has just been put on hold is held; a doubt stays. What is taken after this finds
-- the hold itself. Nobody else writes until the transaction's end. ?1 merchant
update instruction
   set state = 'held', reason = 'merchant', next_attempt_at = null
 where merchant = ?1 and kind = 'payout' and state in ('pending', 'unknown');

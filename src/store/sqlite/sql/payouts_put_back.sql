-- Fenced (record). Puts back what a take of payouts without an answer may have left on the wire, and nobody sends.
-- Safe because: the caller names every payout for this receiver that it has in hand, and one task at a time takes for a
-- receiver, so whatever else stands on the wire to it under this term was never handed to anybody: no byte left. A doubt
-- stays, and the number of the try stays grown. The key of one that was tried before goes on counting: an earlier try may have
-- left. A second time there is nothing to put back.
-- ?1 election, ?2 term, ?3 origin, ?4 kept: [instruction, try]
update instruction
   set state = case when in_doubt then 'unknown' else 'pending' end,
       first_sent_at = case when in_doubt or attempts > 1 then first_sent_at end,
       key_valid_until = case when in_doubt or attempts > 1 then key_valid_until end,
       next_attempt_at = null,
       sending_term = null
 where election = ?1
   and kind = 'payout'
   and state = 'sending'
   and sending_term = ?2
   and receiver = ?3
   and not exists (select 1 from json_each(?4) g where g.value ->> 0 = instruction.id and g.value ->> 1 = instruction.attempts)
returning id;

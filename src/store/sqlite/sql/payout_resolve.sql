-- An operator's word on what came of a payout; its postings follow by payouts_journals.sql and those after it.
-- Safe because: the state that was decided upon is named, and nobody else writes until the transaction's end.
-- ?1 instruction, ?2 state expected, ?3 new state (paid, rejected, returned), ?4 reference, ?5 act
update instruction
   set state = ?3, reason = null, external_reference = case when ?3 = 'returned' then external_reference else coalesce(?4, external_reference) end,
       return_reference = case when ?3 = 'returned' then ?4 end, resolved_act_id = ?5,
       next_attempt_at = null, final_at = (select now from clock)
 where id = ?1 and state = ?2;

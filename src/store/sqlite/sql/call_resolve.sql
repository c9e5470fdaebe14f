-- An operator's word on what came of a call; its unit follows by call_unit.sql.
-- Safe because: the state that was decided upon is named, a doubt stays, and nobody else writes until the transaction's end.
-- ?1 instruction, ?2 state expected, ?3 new state (paid, rejected), ?4 reference, ?5 act
update instruction
   set state = ?3, reason = null, external_reference = coalesce(?4, external_reference), resolved_act_id = ?5,
       next_attempt_at = null, final_at = coalesce(final_at, (select now from clock))
 where id = ?1 and state = ?2 and kind = 'call';

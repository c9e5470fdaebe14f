-- Fenced (record). Puts calls back of which no byte left: to their state before, no attempt of the unit's.
-- Safe because: only tries of this term are touched, those that are kept are named with their number, a doubt stays, and the
-- number of a try only grows.
-- ?1 run, ?2 election, ?3 term, ?4 kept: [instruction, attempt]
update instruction
   set state = case when in_doubt then 'unknown' else 'pending' end, reason = null, next_attempt_at = null, sending_term = null
 where run_id = ?1
   and election = ?2
   and kind = 'call'
   and state = 'sending'
   and sending_term = ?3
   and not exists (select 1 from json_each(?4) g where g.value ->> 0 = instruction.id and g.value ->> 1 = instruction.attempts);

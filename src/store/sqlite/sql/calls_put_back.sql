-- Fenced (record). Puts back what a take of calls without an answer may have left on the wire, and nobody makes.
-- Safe because: the caller names every call of the run that it has in hand, and one task at a time takes calls of a run, so
-- whatever else stands on the wire under this term was never handed to anybody; a call is put back as one of which no byte
-- left: a doubt stays, no attempt is charged, and the number of its try stays grown. A second time there is nothing to put back.
-- ?1 run, ?2 election, ?3 term, ?4 kept: [instruction, attempt]
update instruction
   set state = case when in_doubt then 'unknown' else 'pending' end,
       first_sent_at = case when in_doubt or (select u.attempts from unit u where u.id = instruction.unit_id) > 0
                                 or exists (select 1 from instruction_try y where y.instruction_id = instruction.id and y.outcome <> 'not_sent')
                                then first_sent_at end,
       next_attempt_at = null,
       sending_term = null
 where run_id = ?1
   and election = ?2
   and kind = 'call'
   and state = 'sending'
   and sending_term = ?3
   and exists (select 1 from unit u where u.id = instruction.unit_id and u.state = 'pending')
   and not exists (select 1 from json_each(?4) g where g.value ->> 0 = instruction.id and g.value ->> 1 = instruction.attempts)
returning id;

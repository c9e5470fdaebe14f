-- Fenced (record), after calls_on_the_wire.sql in the same transaction. What came of calls.
-- A failed try of an instruction that is in doubt from before proves nothing about the earlier one: unknown again, or held.
-- Where no byte of any try left (none was charged, is in doubt, or was put off), the key has not begun to count.
-- A doubt, once there, stays. Fates: done, failed, not_sent, put_off (no attempt, but its key counts), unknown. A wait of null sets the unit aside (failed, unknown).
-- ?1 calls: [instruction, unit, fate, error, wait in microseconds]
update instruction
   set state = case
           when g.fate = 'done' then 'paid'
           when g.fate = 'unknown' and g.again is null then 'held'
           when g.fate = 'unknown' then 'unknown'
           when g.fate = 'failed' and g.again is null and instruction.in_doubt then 'held'
           when g.fate = 'failed' and g.again is null then 'rejected'
           when instruction.in_doubt then 'unknown'
           else 'pending'
       end,
       reason = case when g.again is null and (g.fate = 'unknown' or (g.fate = 'failed' and instruction.in_doubt)) then 'unknown' end,
       in_doubt = instruction.in_doubt or g.fate = 'unknown',
       last_error = coalesce(g.error, instruction.last_error),
       first_sent_at = case when g.fate <> 'not_sent' or instruction.in_doubt or g.attempts > 0
                                 or exists (select 1 from instruction_try y where y.instruction_id = instruction.id and y.outcome <> 'not_sent')
                                then instruction.first_sent_at end,
       next_attempt_at = (select now from clock) + g.again,
       sending_term = null,
       final_at = case when g.fate = 'done' or (g.fate = 'failed' and g.again is null and not instruction.in_doubt)
                       then (select now from clock) end
  from (select value ->> 0 as id, value ->> 2 as fate, value ->> 3 as error, value ->> 4 as again,
               (select u.attempts from unit u where u.id = value ->> 1) as attempts
          from json_each(?1)) g
 where instruction.id = g.id;

-- Fenced (record), after payouts_on_the_wire.sql in the same transaction. What came of payouts; its postings follow by
-- payouts_journals.sql and those after it.
-- A doubt, once there, stays. Of what was never sent no byte ever left: its key has not begun to count.
-- ?1 payouts: [instruction, state, reason, doubt, never sent, error, wait in microseconds, reference]
update instruction
   set state = g.state,
       reason = g.reason,
       in_doubt = g.doubt,
       first_sent_at = case when not g.never_sent then instruction.first_sent_at end,
       key_valid_until = case when not g.never_sent then instruction.key_valid_until end,
       next_attempt_at = case when g.state in ('pending', 'unknown') then (select now from clock) + g.again end,
       last_error = coalesce(g.error, instruction.last_error),
       external_reference = coalesce(g.reference, instruction.external_reference),
       sending_term = null,
       final_at = case when g.state in ('paid', 'rejected') then (select now from clock) end
  from (select value ->> 0 as id, value ->> 1 as state, value ->> 2 as reason, value ->> 3 as doubt, value ->> 4 as never_sent,
               value ->> 5 as error, value ->> 6 as again, value ->> 7 as reference
          from json_each(?1)) g
 where instruction.id = g.id;

-- Fenced (record). Charges failed attempts; a unit that waits for nothing more is set aside, in a batch row of its own.
-- Safe because: each names the attempts that it expects, so that charging twice charges once, and nobody else writes until
-- the transaction's end.
-- ?1 run, ?2 election, ?3 term, ?4 charges: [unit, attempts expected, error, wait in microseconds (null: set aside)], ?5 batch
update unit
   set attempts = unit.attempts + 1,
       last_error = g.error,
       state = case when g.again is null then 'set_aside' else 'pending' end,
       next_attempt_at = (select now from clock) + g.again,
       ended_at = case when g.again is null then (select now from clock) end,
       term = case when g.again is null then ?3 end,
       fenced_seq = case when g.again is null then (select value from fenced_seq) end,
       batch_id = case when g.again is null then ?5 end
  from (select value ->> 0 as id, value ->> 1 as attempts, value ->> 2 as error, value ->> 3 as again from json_each(?4)) g
 where unit.id = g.id
   and +unit.run_id = ?1
   and +unit.election = ?2
   and +unit.state = 'pending'
   and +unit.attempts = g.attempts;

-- Fenced (record), after the statement that records what came of these tries or puts them back, in the same transaction. An
-- instruction's last try is the one that it counts. ?1 tries: [instruction, outcome, detail]
update instruction_try
   set ended_at = (select now from clock), outcome = g.outcome, detail = g.detail
  from (select value ->> 0 as id, value ->> 1 as outcome, value ->> 2 as detail,
               (select i.attempts from instruction i where i.id = value ->> 0) as attempt
          from json_each(?1)) g
 where instruction_try.instruction_id = g.id
   and instruction_try.attempt = g.attempt;

-- Fenced (begin). Takes the instructions of units up again: on the wire under this term from now on. Before calls_send.sql.
-- Safe because: one that is on the wire, held or final is left alone; key and bytes are those of the first time (a trigger
-- holds them); a doubt is never reset.
-- ?1 run, ?2 election, ?3 term, ?4 units: [id, generation, key, body]
update instruction
   set state = 'sending',
       attempts = instruction.attempts + 1,
       sending_term = ?3,
       next_attempt_at = null,
       first_sent_at = coalesce(instruction.first_sent_at, (select now from clock))
  from (select value ->> 0 as unit_id, value ->> 1 as generation from json_each(?4)) g
 where instruction.unit_id = g.unit_id
   and instruction.kind = 'call'
   and instruction.generation = g.generation
   and +instruction.run_id = ?1
   and +instruction.election = ?2
   and +instruction.state in ('pending', 'unknown')
   and (instruction.next_attempt_at is null or instruction.next_attempt_at <= (select now from clock))
returning id, unit_id, idempotency_key, body, attempts, in_doubt,
          ((select now from clock) - first_sent_at) / 1000000.0 as age;

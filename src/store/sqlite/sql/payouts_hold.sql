-- Fenced (begin), after payouts_pick.sql in the same transaction. Holds payouts for a person, each with its reason.
-- Safe because: only what is not on the wire is held, and a doubt stays. What is held as unknown is in doubt, also where every try
-- was proved undone: once its key may be forgotten, nobody knows what another one would do.
-- ?1 election, ?2 payouts: [instruction, reason, error]
update instruction
   set state = 'held', reason = g.reason, in_doubt = instruction.in_doubt or g.reason = 'unknown', next_attempt_at = null, last_error = coalesce(g.error, instruction.last_error)
  from (select value ->> 0 as id, value ->> 1 as reason, value ->> 2 as error from json_each(?2)) g
 where instruction.id = g.id
   and +instruction.election = ?1
   and +instruction.state in ('pending', 'unknown');

-- Fenced (begin), after a claim. Ends the claimed units.
-- Safe because: the transition names the state and the attempts that it expects; fewer rows than asked for roll back.
-- By their ids alone (hence the signs): an index of the run's units would be read from end to end.
-- ?1 run, ?2 election, ?3 term, ?4 units: [id, attempts, state, net], ?5 batch
update unit
   set state = g.state,
       net = g.net,
       batch_id = ?5,
       term = ?3,
       fenced_seq = (select value from fenced_seq),
       next_attempt_at = null,
       ended_at = (select now from clock)
  from (select value ->> 0 as id, value ->> 1 as attempts, value ->> 2 as state, value ->> 3 as net from json_each(?4)) g
 where unit.id = g.id
   and +unit.run_id = ?1
   and +unit.election = ?2
   and +unit.state = 'pending'
   and +unit.attempts = g.attempts;

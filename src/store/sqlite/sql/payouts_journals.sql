-- The journals of payouts that ended, or came back, in this transaction. A trigger asks for the term once more, and that there
-- is none yet of this kind. ?1 kind (paid, rejected, returned), ?2 term, ?3 instructions
insert into journal (unit_id, run_id, kind, generation, election, term, posted_at, fenced_seq)
select i.unit_id, i.run_id, ?1, i.generation, i.election, ?2, c.now, s.value
  from json_each(?3) g
  join instruction i on i.id = g.value, clock c, fenced_seq s
 where i.kind = 'payout' and i.state = ?1;

-- Fenced (begin). The journals of units that bound something. A trigger asks for the term once more, and that the unit was
-- not posted. ?1 run, ?2 election, ?3 term, ?4 journals: [unit, generation]
insert into journal (unit_id, run_id, kind, generation, election, term, posted_at, fenced_seq)
select g.value ->> 0, ?1, 'settle', g.value ->> 1, ?2, ?3, c.now, s.value
  from json_each(?4) g, clock c, fenced_seq s;

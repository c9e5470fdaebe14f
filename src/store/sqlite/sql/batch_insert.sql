-- The row of a batch, in its transaction. ?1 run, ?2 election, ?3 term, ?4 units, ?5 settled, ?6 carried, ?7 empty,
-- ?8 set aside, ?9 instructions
insert into batch (run_id, election, term, units, settled, carried, empty, set_aside, instructions, committed_at, fenced_seq)
select ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, c.now, s.value from clock c, fenced_seq s
returning id;

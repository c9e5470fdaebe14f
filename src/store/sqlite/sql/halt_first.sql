-- Halts an election that nobody ever led. ?1 election, ?2 reason, ?3 by
insert into fence (election, term, tenure_id, accepted_at, halted_at, halt_reason, halted_by)
select ?1, 0, '00000000-0000-0000-0000-000000000000', now, now, ?2, ?3
  from clock
 where not exists (select 1 from fence f where f.election = ?1);

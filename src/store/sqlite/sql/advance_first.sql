-- The same where there is none. No row: a claim at or above this term is in force. ?1 election, ?2 term, ?3 tenure
insert into fence (election, term, tenure_id, accepted_at)
select ?1, ?2, ?3, now
  from clock
 where not exists (select 1 from fence f where f.election = ?1);

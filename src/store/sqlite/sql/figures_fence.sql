-- Refusals on record, and whether the election is halted.
-- ?1 election
select (select count(*) from fence_reject j where j.election = ?1) as rejects,
       exists (select 1 from fence f where f.election = ?1 and f.halted_at is not null) as halted;

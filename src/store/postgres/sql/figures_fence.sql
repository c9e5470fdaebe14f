-- Refusals on record, and whether the election is halted.
-- $1 election
select (select count(*) from bursar.fence_reject j where j.election = $1) as rejects,
       exists (select from bursar.fence f where f.election = $1 and f.halted_at is not null) as halted;

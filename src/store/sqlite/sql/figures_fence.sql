-- Refusals on record and receivers that are stopped (of all elections, so that those whose leader is gone are seen by every other),
-- whether the election is halted, and how far ahead of the clock its jobs were evaluated, in seconds.
-- ?1 election
select (select count(*) from fence_reject) as rejects,
       (select count(*) from receiver r where r.stopped_at is not null and not r.needs_resume) as stopped,
       (select count(*) from receiver r where r.needs_resume) as needs_resume,
       exists (select 1 from fence f where f.election = ?1 and f.halted_at is not null) as halted,
       (select max(coalesce(max(j.evaluated_until) - (select now from clock), 0), 0) / 1000000
          from job j where j.election = ?1 and j.removed_at is null) as held_back;

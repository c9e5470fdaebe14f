-- Refusals on record and receivers that are stopped (of all elections, so that those whose leader is gone are seen by every other),
-- whether the election is halted, and how far ahead of the clock its jobs were evaluated, in seconds.
-- $1 election
select (select count(*) from bursar.fence_reject) as rejects,
       (select count(*) from bursar.receiver r where r.stopped_at is not null and not r.needs_resume) as stopped,
       (select count(*) from bursar.receiver r where r.needs_resume) as needs_resume,
       exists (select from bursar.fence f where f.election = $1 and f.halted_at is not null) as halted,
       (select greatest(extract(epoch from max(j.evaluated_until) - clock_timestamp()), 0)::bigint
          from bursar.job j where j.election = $1 and j.removed_at is null) as held_back;

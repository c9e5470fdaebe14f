-- Runs of an election that still have work, oldest due first; inside a fenced transaction. With them those that a tick of a job
-- opened in another election, where the job is of this one or has runs open here: runs of a job take turns, wherever they were
-- opened. Two selects, each by the index of open runs: an "or", or an index of ticks, would read every one there ever was; so what
-- a tick opened is told by having no request.
-- Of a job, and of each of its requests, those that are given up or open and the oldest and newest beside them, caught up and on time
-- apart: one that may go is among them, and a job whose runs pile up hides nobody else's. (Newest first, one that was caught up may
-- be behind the newest so many, and comes in its turn.)
-- $1 election, $2 how many from each end
with found as materialized (
    select r.id, r.job_id, r.request_id, r.due_at, r.caught_up, r.state, r.why is null as goes_on, false as elsewhere
      from bursar.run r
     where r.election = $1 and r.state in ('planning', 'open')
    union all
    select r.id, r.job_id, r.request_id, r.due_at, r.caught_up, r.state, r.why is null as goes_on, true
      from bursar.run r
     where r.election <> $1 and r.state in ('planning', 'open') and r.request_id is null
       and (exists (select from bursar.job j where j.id = r.job_id and j.election = $1 and j.removed_at is null)
            or r.job_id in (select o.job_id from bursar.run o
                             where o.election = $1 and o.kind = 'tick' and o.state in ('planning', 'open')))
), placed as (
    select f.id, f.elsewhere,
           row_number() over (partition by f.job_id, f.request_id, f.caught_up
                              order by f.goes_on, f.state, f.due_at, f.id) as from_oldest,
           row_number() over (partition by f.job_id, f.request_id, f.caught_up order by f.due_at desc, f.id desc) as from_newest
      from found f
)
select r.id, r.id::text as name, r.job_id, r.definition, r.kind, r.request_id, r.tick, r.due_at, r.cutoff_at, r.value_date, r.state,
       r.caught_up, r.opened_at, p.elsewhere, r.why
  from placed p
  join bursar.run r on r.id = p.id
 where p.from_oldest <= $2 or p.from_newest <= $2
 order by r.due_at, r.id;

-- Runs of an election that still have work, oldest due first; inside a fenced transaction. An election has as many open
-- runs as its jobs and their catching up allow. With them those that a tick of a job opened in another election, where the job is
-- of this one or has runs open here: runs of a job take turns, wherever they were opened. Two selects, each by the index of open runs: an
-- "or", or an index of ticks, would read every one there ever was; so what a tick opened is told by having no request.
-- ?1 election
select r.id as id, cast(r.id as text) as name, r.job_id as job_id, r.definition as definition, r.kind as kind,
       r.request_id as request_id, r.tick as tick, r.due_at as due_at, r.cutoff_at as cutoff_at, r.value_date as value_date,
       r.state as state, r.caught_up as caught_up, r.opened_at as opened_at, 0 as elsewhere
  from run r
 where r.election = ?1 and r.state in ('planning', 'open')
union all
select r.id, cast(r.id as text), r.job_id, r.definition, r.kind, r.request_id, r.tick, r.due_at, r.cutoff_at, r.value_date,
       r.state, r.caught_up, r.opened_at, 1
  from run r
 where r.election <> ?1 and r.state in ('planning', 'open') and r.request_id is null
   and (exists (select 1 from job j where j.id = r.job_id and j.election = ?1 and j.removed_at is null)
        or r.job_id in (select o.job_id from run o
                         where o.election = ?1 and o.kind = 'tick' and o.state in ('planning', 'open')))
 order by due_at, id
 limit 10000;

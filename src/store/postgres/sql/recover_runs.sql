-- Takes the open runs over that a lower term worked on. A death counts only where none of the run's units ended since that
-- term took it up: whatever ends units writes a batch row. Fenced, and safe to repeat: what was counted has no working term any more.
with mine as (
    select r.id,
           exists (select from bursar.batch b where b.run_id = r.id and b.committed_at >= r.worked_at) as progress
      from bursar.run r
     where r.election = $1 and r.state in ('planning', 'open') and r.worked_term < $2
     order by r.id
       for update of r
)
update bursar.run r
   set deaths = case when mine.progress then 0 else r.deaths + 1 end, worked_term = null, worked_at = null
  from mine
 where r.id = mine.id
returning r.id, r.deaths;

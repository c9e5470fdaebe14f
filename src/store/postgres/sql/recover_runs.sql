-- Takes the open runs over that a lower term worked on; over one that is given up already nobody works. Fenced, and safe to
-- repeat: what was counted has no working term any more. A death counts only where
-- - none of the run's units ended under that term: whatever ends units writes a batch row (by terms, for the store's clock
--   may have been stepped back meanwhile), and
-- - its leader may have died: one that noted how its term ended (lost its session, was fenced) lived on. A fault counts.
with mine as (
    select r.id,
           exists (select from bursar.batch b where b.run_id = r.id and b.term = r.worked_term) as progress,
           exists (select
                     from bursar.term_history h
                    where h.election = $1
                      and h.term = r.worked_term
                      and h.end_reason in ('drain', 'cordoned', 'transfer', 'session_lost', 'lease_gone', 'leader_key_gone',
                                           'leader_key_taken', 'ineligible', 'fenced')) as lived
      from bursar.run r
     where r.election = $1 and r.state in ('planning', 'open') and r.worked_term < $2 and r.why is null
     order by r.id
       for no key update of r
)
update bursar.run r
   set deaths = case when mine.progress then 0 when mine.lived then r.deaths else r.deaths + 1 end,
       worked_term = null,
       worked_at = null
  from mine
 where r.id = mine.id
returning r.id, r.deaths;

-- Takes the open runs over that a lower term worked on; over one that is given up already nobody works. Fenced, and safe to
-- repeat: what was counted has no working term any more. A death counts only where
-- - none of the run's units ended under that term: whatever ends units writes a batch row (by terms, for the store's clock
--   may have been stepped back meanwhile), and
-- - its leader may have died: one that noted how its term ended (lost its session, was fenced) lived on. A fault counts.
-- ?1 election, ?2 term
update run
   set deaths = case
           when exists (select 1 from batch b where b.run_id = run.id and b.term = run.worked_term) then 0
           when exists (select 1 from term_history h
                         where h.election = ?1
                           and h.term = run.worked_term
                           and h.end_reason in ('drain', 'cordoned', 'transfer', 'session_lost', 'lease_gone', 'leader_key_gone',
                                                'leader_key_taken', 'ineligible', 'fenced')) then deaths
           else deaths + 1
       end,
       worked_term = null,
       worked_at = null
 where election = ?1 and state in ('planning', 'open') and worked_term < ?2 and why is null
returning id, deaths;

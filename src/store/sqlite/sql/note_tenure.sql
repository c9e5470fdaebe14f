-- When a tenure first worked (?4 is null), or when and why it ended. The first note of a kind stays.
update term_history
   set worked_at = case when ?4 is null then coalesce(worked_at, (select now from clock)) else worked_at end,
       ended_at = case when ?4 is null then ended_at else coalesce(ended_at, (select now from clock)) end,
       end_reason = coalesce(end_reason, ?4)
 where election = ?1 and term = ?2 and tenure_id = ?3;

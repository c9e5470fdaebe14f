-- When a tenure first worked. The first note stays.
update bursar.term_history
   set worked_at = coalesce(worked_at, $4)
 where election = $1 and term = $2 and tenure_id = $3;

-- When and why a tenure ended. The first note stays. What a replica takes for the time may be off by a little: no term ends before
-- it was accepted, nor later than now.
-- ?1 election, ?2 term, ?3 tenure, ?4 reason, ?5 when, where that is known
update term_history
   set ended_at = coalesce(ended_at, max(accepted_at, min(coalesce(?5, (select now from clock)), (select now from clock)))),
       end_reason = coalesce(end_reason, ?4)
 where election = ?1 and term = ?2 and tenure_id = ?3;

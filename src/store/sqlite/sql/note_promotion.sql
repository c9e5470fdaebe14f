-- How a term came about and what its leader took over; unfenced, for people. The first note stays. The win is placed on this
-- clock, and never after the acceptance that followed it.
-- ?1 election, ?2 term, ?3 tenure, ?4 handed over, ?5 microseconds since the win, ?6 microseconds that the place was seen free
-- ?7 runs taken over, ?8 of those set aside, ?9 outcomes unknown
update term_history
   set handed_over = ?4,
       won_at = min(accepted_at, (select now from clock) - ?5),
       stood_at = min(accepted_at, (select now from clock) - ?5) - ?6,
       taken_runs = ?7,
       taken_set_aside = ?8,
       taken_unknown = ?9
 where election = ?1 and term = ?2 and tenure_id = ?3 and won_at is null;

-- Fenced (record), with the receiver on record. Stops it, durably. One that is stopped already keeps when it is tried next; its
-- reason is the newest, unless only an operator ends the stop.
-- ?1 origin, ?2 reason, ?3 detail, ?4 term, ?5 the wait before the first try, microseconds, ?6 refusals in a row, ?7 whether
-- only an operator ends it
update receiver
   set stopped_at = coalesce(stopped_at, (select now from clock)),
       reason = case when needs_resume then reason else ?2 end,
       detail = case when needs_resume then detail else ?3 end,
       term = ?4,
       next_probe_at = coalesce(next_probe_at, (select now from clock) + ?5),
       refusals = max(refusals, ?6),
       needs_resume = needs_resume or ?7
 where origin = ?1;

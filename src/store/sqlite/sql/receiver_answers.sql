-- Fenced (record), where the receiver is on record. It answered as one that works: a stop that ends by itself is over.
-- Answers its refusals in a row. ?1 origin, ?2 whether it paid since the refusals before, ?3 refusals since, ?4 term
update receiver
   set refusals = case when ?2 then ?3 else refusals + ?3 end,
       stopped_at = case when needs_resume then stopped_at end,
       reason = case when needs_resume then reason end,
       detail = case when needs_resume then detail end,
       next_probe_at = case when needs_resume then next_probe_at end,
       probes = case when needs_resume then probes else 0 end,
       term = ?4
 where origin = ?1
returning refusals;

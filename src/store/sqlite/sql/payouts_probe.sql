-- Fenced (begin). One instruction is tried now at a receiver that is stopped; the next one after a longer wait.
-- ?1 origin, ?2 the shortest wait, ?3 the longest, microseconds
update receiver
   set probes = probes + 1,
       next_probe_at = (select now from clock) + min(?3, ?2 * (1 << min(probes, 20)))
 where origin = ?1 and stopped_at is not null;

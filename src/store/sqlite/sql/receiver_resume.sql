-- An operator ends a receiver's stop; its refusals are counted anew. ?1 origin
update receiver
   set stopped_at = null, reason = null, detail = null, next_probe_at = null, probes = 0, refusals = 0, needs_resume = 0
 where origin = ?1 and (stopped_at is not null or refusals > 0);

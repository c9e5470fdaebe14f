-- An operator ends a receiver's stop; its refusals are counted anew. Every gate is held shared.
-- $1 origin
update bursar.receiver r
   set stopped_at = null, reason = null, detail = null, next_probe_at = null, probes = 0, refusals = 0, needs_resume = false
 where r.origin = $1 and (r.stopped_at is not null or r.refusals > 0);

-- Another definition comes into force, or (?2 is null) the job is removed. Fenced; the row was compared in this transaction.
-- ?1 job, ?2 definition, ?3 fingerprint, ?4 evaluated until, ?5 term
update job
   set definition = coalesce(?2, definition), fingerprint = coalesce(?3, fingerprint), evaluated_until = ?4,
       removed_at = case when ?2 is null then (select now from clock) end, term = ?5
 where id = ?1
returning id, definition, fingerprint, evaluated_until, paused_reason, pauses;

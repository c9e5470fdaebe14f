-- Another definition comes into force, or ($2 is null) the job is removed. Fenced; the row is locked and was compared.
update bursar.job j
   set definition = coalesce($2, j.definition), fingerprint = coalesce($3, j.fingerprint), evaluated_until = $4,
       removed_at = case when $2 is null then clock_timestamp() end, term = $5
 where j.id = $1
returning j.id, j.definition, j.fingerprint, j.evaluated_until, j.paused_reason, j.pauses;

-- A job that was removed comes back, in this election, evaluated from the store's now on. A pause that lasts is an
-- operator's word, and no edit of a schedule takes it back. Fenced; the row is locked.
update bursar.job j
   set election = $2, definition = $3, fingerprint = $4, evaluated_until = greatest(j.evaluated_until, clock_timestamp()),
       removed_at = null, pauses = '[]', term = $5
 where j.name = $1 and j.removed_at is not null
returning j.id, j.definition, j.fingerprint, j.evaluated_until, j.paused_reason, j.pauses;

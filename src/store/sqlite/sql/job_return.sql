-- A job that was removed comes back, in this election, evaluated from the store's now on. A pause that lasts is an
-- operator's word, and no edit of a schedule takes it back. Fenced.
-- ?1 name, ?2 election, ?3 definition, ?4 fingerprint, ?5 term
update job
   set election = ?2, definition = ?3, fingerprint = ?4, evaluated_until = max(evaluated_until, (select now from clock)),
       removed_at = null, pauses = '[]', term = ?5
 where name = ?1 and removed_at is not null
returning id, definition, fingerprint, evaluated_until, paused_reason, pauses;

-- A job goes over to another election. How far it is evaluated stays, and so do its pauses. Fenced; the row was compared in this
-- transaction.
-- ?1 job, ?2 election, ?3 definition, ?4 fingerprint, ?5 term
update job
   set election = ?2, definition = ?3, fingerprint = ?4, term = ?5
 where id = ?1
returning id, definition, fingerprint, evaluated_until, paused_reason, pauses;

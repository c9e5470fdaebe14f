-- A job goes over to another election. How far it is evaluated stays, and so do its pauses. Fenced; the gates of both elections are
-- held, the row is locked and was compared.
-- $1 job, $2 election, $3 definition, $4 fingerprint, $5 term
update bursar.job j
   set election = $2, definition = $3, fingerprint = $4, term = $5
 where j.id = $1
returning j.id, j.definition, j.fingerprint, j.evaluated_until, j.paused_reason, j.pauses;

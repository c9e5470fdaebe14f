-- Ends a job's pause and keeps it for the ticks that fell into it. The gate is held shared, the row locked and compared.
-- $1 job, $2 the pauses that are kept
update bursar.job set paused_at = null, paused_reason = null, pauses = $2 where id = $1 and paused_at is not null;

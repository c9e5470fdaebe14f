-- Ends a job's pause and keeps it for the ticks that fell into it. Nobody else writes until this transaction's end.
-- ?1 job, ?2 the pauses that are kept
update job set paused_at = null, paused_reason = null, pauses = ?2 where id = ?1 and paused_at is not null;

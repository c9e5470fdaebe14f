-- Pauses a job. The gate of its election is held shared, and its row is locked and was compared.
-- $1 job, $2 reason
update bursar.job set paused_at = clock_timestamp(), paused_reason = $2 where id = $1 and paused_at is null;

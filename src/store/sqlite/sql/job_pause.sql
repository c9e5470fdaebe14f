-- Pauses a job. Nobody else writes until this transaction's end, and its row was compared.
-- ?1 job, ?2 reason
update job set paused_at = (select now from clock), paused_reason = ?2 where id = ?1 and paused_at is null;

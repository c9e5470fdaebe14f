-- Pauses that have ended are kept with their job until every tick that fell into them has its outcome: a list of
-- {"from", "until", "reason"}. The one that lasts stands in paused_at and paused_reason.
alter table bursar.job add column pauses jsonb not null default '[]';
alter table bursar.job add constraint job_pause_is_whole check ((paused_at is null) = (paused_reason is null));

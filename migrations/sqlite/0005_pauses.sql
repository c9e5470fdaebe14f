-- Pauses that have ended are kept with their job until every tick that fell into them has its outcome: a list of
-- {"from", "until", "reason"}. The one that lasts stands in paused_at and paused_reason.
alter table job add column pauses text not null default '[]' constraint job_pauses_are_json check (json_valid(pauses));

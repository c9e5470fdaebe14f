-- Payouts on their way to receivers: what a try must know of those before it, and receivers that are stopped.

alter table bursar.instruction
    -- The receiver forgets the key then. Counted from the first try; empty again where that was proved undone.
    add column key_valid_until timestamptz,
    -- Whether the receiver can be asked what became of a key.
    add column looks_up boolean not null default false,
    -- A person's word on what came of it; without one, a doubt is never answered by a reversal.
    add column resolved_act_id bigint references bursar.operator_act;

-- What a lane takes next, per job, in its order: never waiting for a release, never a call.
create index instruction_due on bursar.instruction (job_id, next_attempt_at nulls first, id)
    where kind = 'payout' and state in ('pending', 'unknown') and release <> 'waiting';
-- What a hold of a merchant looks for.
create index instruction_of_merchant on bursar.instruction (merchant)
    where kind = 'payout' and state in ('pending', 'sending', 'unknown', 'held');

-- A receiver, by its origin, is stopped for all jobs and elections that send to it.
alter table bursar.receiver
    -- For a person; statuses and causes, never what a body says.
    add column detail text,
    -- While stopped, one instruction is tried at this time; null: at once.
    add column next_probe_at timestamptz,
    add column probes integer not null default 0,
    -- Only an operator's resume ends it.
    add column needs_resume boolean not null default false,
    add constraint receiver_stop_is_whole check ((stopped_at is null) = (reason is null) and (stopped_at is not null or not needs_resume));

-- Payouts on their way to receivers: what a try must know of those before it, and receivers that are stopped.

-- The receiver forgets the key then. Counted from the first try; empty again where that was proved undone.
alter table instruction add column key_valid_until integer;
-- Whether the receiver can be asked what became of a key.
alter table instruction add column looks_up integer not null default 0
    constraint instruction_looks_up_is_a_truth check (looks_up in (0, 1));
-- A person's word on what came of it; without one, a doubt is never answered by a reversal.
alter table instruction add column resolved_act_id integer references operator_act (id);

-- What a lane takes next, per job, in its order: never waiting for a release, never a call.
create index instruction_due on instruction (job_id, next_attempt_at, id)
    where kind = 'payout' and state in ('pending', 'unknown') and release <> 'waiting';
-- What a hold of a merchant looks for.
create index instruction_of_merchant on instruction (merchant)
    where kind = 'payout' and state in ('pending', 'sending', 'unknown', 'held');

-- A receiver, by its origin, is stopped for all jobs and elections that send to it. Nothing wrote to the table before.
drop table receiver;
create table receiver (
    origin        text    primary key,
    stopped_at    integer,
    reason        text,
    -- For a person; statuses and causes, never what a body says.
    detail        text,
    refusals      integer not null default 0,
    term          integer,
    -- While stopped, one instruction is tried at this time; null: at once.
    next_probe_at integer,
    probes        integer not null default 0,
    -- Only an operator's resume ends it.
    needs_resume  integer not null default 0 constraint receiver_needs_resume_is_a_truth check (needs_resume in (0, 1)),
    constraint receiver_stop_is_whole
        check ((stopped_at is null) = (reason is null) and (stopped_at is not null or not needs_resume))
) strict;

-- A row per try of an instruction: each request that was made for it, and each look-up of its key. Written in the transaction
-- that puts it on the wire, ended in the one that records what came of it or puts it back. Rows are kept as long as their
-- instruction is, which is never deleted; tries from before this release are counted in their instruction and have no row.

create table bursar.instruction_try (
    instruction_id bigint      not null references bursar.instruction,
    -- As the instruction counts them; numbers grow, also where no byte left.
    attempt        integer     not null,
    -- Only asked for, and not sent.
    asked          boolean     not null,
    -- The term that made it.
    term           bigint      not null,
    receiver       text,
    began_at       timestamptz not null default clock_timestamp(),
    ended_at       timestamptz,
    outcome        text        constraint try_outcome_is_known
        check (outcome in ('paid', 'done', 'rejected', 'failed', 'mismatch', 'unknown', 'undone', 'not_sent')),
    -- For a person: status or cause, never what a body says.
    detail         text,
    primary key (instruction_id, attempt),
    constraint try_end_is_whole check ((ended_at is null) = (outcome is null))
);

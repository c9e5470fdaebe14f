-- Jobs, runs, units, batches: what is to be done and what was.

create table bursar.job (
    id                   bigint      generated always as identity primary key,
    name                 text        not null constraint job_name_is_unique unique,
    election             text        not null,
    definition           jsonb       not null,
    fingerprint          text        not null,
    -- A due time: every tick due up to it has a run row. Never lowered but for a job that was removed and comes back.
    evaluated_until      timestamptz not null,
    paused_at            timestamptz,
    paused_reason        text,
    removed_at           timestamptz,
    term                 bigint      not null,
    created_at           timestamptz not null default clock_timestamp()
);
create index job_by_election on bursar.job (election) where removed_at is null;

create table bursar.run (
    id          bigint      generated always as identity primary key,
    job_id      bigint      not null references bursar.job,
    job         text        not null,
    election    text        not null,
    kind        text        not null constraint run_kind_is_known check (kind in ('tick', 'manual')),
    request_id  uuid,
    tick        timestamptz not null,
    due_at      timestamptz not null,
    cutoff_at   timestamptz not null,
    value_date  date        not null,
    definition  jsonb       not null,
    fingerprint text        not null,
    state       text        not null constraint run_state_is_known
        check (state in ('planning', 'open', 'complete', 'complete_set_aside', 'skipped', 'coalesced', 'missed')),
    why         text,
    caught_up   boolean     not null default false,
    deadline_at timestamptz,
    opened_term bigint      not null,
    opened_at   timestamptz not null default clock_timestamp(),
    finished_at timestamptz,
    -- The term that works on it now (null after a planned end), and the deaths of such terms without progress.
    worked_term bigint,
    worked_at   timestamptz,
    deaths      integer     not null default 0,
    -- Set aside while its units were still being written: a retry plans on.
    was_planning boolean    not null default false,
    xact        xid8        not null default pg_current_xact_id(),
    constraint run_manual_has_a_request check ((kind = 'manual') = (request_id is not null)),
    constraint run_is_not_early check (opened_at >= due_at or kind = 'manual')
);
create unique index run_one_per_job_and_tick on bursar.run (job_id, tick) where kind = 'tick';
create unique index run_one_per_request_and_tick on bursar.run (request_id, tick) where kind = 'manual';
create index run_open on bursar.run (election, due_at, id) where state in ('planning', 'open');
create index run_by_job on bursar.run (job_id, due_at desc);

create table bursar.batch (
    id           bigint      generated always as identity primary key,
    run_id       bigint      not null references bursar.run,
    election     text        not null,
    term         bigint      not null,
    units        bigint      not null,
    settled      bigint      not null,
    carried      bigint      not null,
    empty        bigint      not null,
    set_aside    bigint      not null,
    instructions bigint      not null,
    committed_at timestamptz not null default clock_timestamp(),
    xact         xid8        not null default pg_current_xact_id()
);
create index batch_by_run on bursar.batch (run_id);

create table bursar.unit (
    id              bigint      generated always as identity primary key,
    run_id          bigint      not null references bursar.run,
    election        text        not null,
    key             text        collate "C" not null,
    -- Of a ledger unit.
    merchant        text        collate "C",
    currency        text,
    payload         jsonb,
    state           text        not null default 'pending' constraint unit_state_is_known
        check (state in ('pending', 'settled', 'carried', 'empty', 'set_aside')),
    attempts        integer     not null default 0,
    next_attempt_at timestamptz,
    last_error      text,
    generation      integer     not null default 0,
    net             bigint,
    batch_id        bigint      references bursar.batch,
    term            bigint,
    -- Of the transaction that set the term.
    xact            xid8,
    ended_at        timestamptz,
    constraint unit_end_is_whole check ((state = 'pending') = (ended_at is null))
);
create unique index unit_one_per_run_and_key on bursar.unit (run_id, key);
-- Claims stay flat as history grows: only pending units are in these.
create index unit_fresh on bursar.unit (run_id, id) where state = 'pending' and attempts = 0;
create index unit_tried on bursar.unit (run_id, next_attempt_at) where state = 'pending' and attempts > 0;
-- Pending whatever its attempts: the calls that are due, what a run still has, what is set aside with it.
create index unit_pending on bursar.unit (run_id, id) where state = 'pending';
create index unit_set_aside on bursar.unit (run_id) where state = 'set_aside';

-- Operators' acts, and requests that only a leader may execute.
create table bursar.operator_act (
    id       bigint      generated always as identity primary key,
    at       timestamptz not null default clock_timestamp(),
    role     text        not null default session_user,
    os_user  text        not null,
    host     text        not null,
    action   text        not null,
    target   text        not null,
    reason   text,
    election text,
    term     bigint,
    details  jsonb
);

create table bursar.request (
    id          uuid        primary key default gen_random_uuid(),
    election    text        not null,
    kind        jsonb       not null,
    state       text        not null default 'waiting' constraint request_state_is_known check (state in ('waiting', 'done', 'refused')),
    result      jsonb,
    act_id      bigint      not null references bursar.operator_act,
    at          timestamptz not null default clock_timestamp(),
    executed_at timestamptz,
    term        bigint
);
create index request_waiting on bursar.request (election, at) where state = 'waiting';

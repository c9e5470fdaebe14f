-- Jobs, runs, units, batches: what is to be done and what was.

create table job (
    id                   integer primary key,
    name                 text    not null,
    election             text    not null,
    definition           text    not null constraint job_definition_is_json check (json_valid(definition)),
    fingerprint          text    not null,
    -- A due time: every tick due up to it has a run row. Never lowered but for a job that was removed and comes back.
    evaluated_until      integer not null,
    paused_at            integer,
    paused_reason        text,
    removed_at           integer,
    term                 integer not null,
    created_at           integer not null
) strict;
create unique index job_name_is_unique on job (name);
create index job_by_election on job (election) where removed_at is null;

create table run (
    id           integer primary key,
    job_id       integer not null references job (id),
    job          text    not null,
    election     text    not null,
    kind         text    not null constraint run_kind_is_known check (kind in ('tick', 'manual')),
    request_id   text    constraint run_request_is_an_id check (length(request_id) = 36),
    tick         integer not null,
    due_at       integer not null,
    cutoff_at    integer not null,
    value_date   text    not null constraint run_value_date_is_a_date check (date(value_date) is value_date),
    definition   text    not null constraint run_definition_is_json check (json_valid(definition)),
    fingerprint  text    not null,
    state        text    not null constraint run_state_is_known
        check (state in ('planning', 'open', 'complete', 'complete_set_aside', 'skipped', 'coalesced', 'missed')),
    why          text,
    caught_up    integer not null default 0 constraint run_caught_up_is_a_truth check (caught_up in (0, 1)),
    deadline_at  integer,
    opened_term  integer not null,
    opened_at    integer not null,
    finished_at  integer,
    -- The term that works on it now (null after a planned end), and the deaths of such terms without progress.
    worked_term  integer,
    worked_at    integer,
    deaths       integer not null default 0,
    -- Set aside while its units were still being written: a retry plans on.
    was_planning integer not null default 0 constraint run_was_planning_is_a_truth check (was_planning in (0, 1)),
    fenced_seq   integer not null,
    constraint run_manual_has_a_request check ((kind = 'manual') = (request_id is not null)),
    constraint run_is_not_early check (opened_at >= due_at or kind = 'manual')
) strict;
create unique index run_one_per_job_and_tick on run (job_id, tick) where kind = 'tick';
create unique index run_one_per_request_and_tick on run (request_id, tick) where kind = 'manual';
create index run_open on run (election, due_at, id) where state in ('planning', 'open');
create index run_by_job on run (job_id, due_at desc);

create table batch (
    id           integer primary key,
    run_id       integer not null references run (id),
    election     text    not null,
    term         integer not null,
    units        integer not null,
    settled      integer not null,
    carried      integer not null,
    empty        integer not null,
    set_aside    integer not null,
    instructions integer not null,
    committed_at integer not null,
    fenced_seq   integer not null
) strict;
create index batch_by_run on batch (run_id);

create table unit (
    id              integer primary key,
    run_id          integer not null references run (id),
    election        text    not null,
    key             text    not null,
    -- Of a ledger unit.
    merchant        text,
    currency        text,
    payload         text    constraint unit_payload_is_json check (json_valid(payload)),
    state           text    not null default 'pending' constraint unit_state_is_known
        check (state in ('pending', 'settled', 'carried', 'empty', 'set_aside')),
    attempts        integer not null default 0,
    next_attempt_at integer,
    last_error      text,
    generation      integer not null default 0,
    net             integer,
    batch_id        integer references batch (id),
    term            integer,
    -- Of the transaction that set the term.
    fenced_seq      integer,
    ended_at        integer,
    constraint unit_end_is_whole check ((state = 'pending') = (ended_at is null))
) strict;
create unique index unit_one_per_run_and_key on unit (run_id, key);
-- Claims stay flat as history grows: only pending units are in these. The id stands in every index anyway.
create index unit_fresh on unit (run_id) where state = 'pending' and attempts = 0;
create index unit_tried on unit (run_id, next_attempt_at) where state = 'pending' and attempts > 0;
-- Pending whatever its attempts: the calls that are due, what a run still has, what is set aside with it.
create index unit_pending on unit (run_id) where state = 'pending';
create index unit_set_aside on unit (run_id) where state = 'set_aside';

-- Operators' acts, and requests that only a leader may execute.
create table operator_act (
    id       integer primary key,
    at       integer not null,
    role     text    not null default 'sqlite',
    os_user  text    not null,
    host     text    not null,
    action   text    not null,
    target   text    not null,
    reason   text,
    election text,
    term     integer,
    details  text    constraint operator_act_details_are_json check (json_valid(details))
) strict;

create table request (
    id          text    primary key constraint request_id_is_an_id check (length(id) = 36),
    election    text    not null,
    kind        text    not null constraint request_kind_is_json check (json_valid(kind)),
    state       text    not null default 'waiting' constraint request_state_is_known check (state in ('waiting', 'done', 'refused')),
    result      text    constraint request_result_is_json check (json_valid(result)),
    act_id      integer not null references operator_act (id),
    at          integer not null,
    executed_at integer,
    term        integer
) strict;
create index request_waiting on request (election, at) where state = 'waiting';

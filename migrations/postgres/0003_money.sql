-- Entries in, journals, instructions out. Amounts are whole minor units.

create table bursar.import (
    id            bigint      generated always as identity primary key,
    source        text        collate "C" not null,
    file_name     text        not null,
    sha256        text        not null,
    profile       text,
    rows          bigint      not null,
    sums          jsonb       not null,
    act_id        bigint      not null references bursar.operator_act,
    at            timestamptz not null default clock_timestamp(),
    reverted_at   timestamptz,
    revert_reason text,
    revert_act_id bigint      references bursar.operator_act
);
create index import_by_sha on bursar.import (source, sha256);

create table bursar.entry (
    id            bigint      generated always as identity primary key,
    source        text        collate "C" not null,
    external_id   text        collate "C" not null,
    merchant      text        collate "C" not null constraint entry_merchant_is_bounded check (octet_length(merchant) between 1 and 128),
    currency      text        not null constraint entry_currency_is_a_code check (currency ~ '^[A-Z]{3}$'),
    kind          text        not null,
    amount        bigint      not null,
    fee           bigint      not null,
    occurred_at   timestamptz not null,
    available_at  timestamptz not null,
    reference     text,
    -- Null for what bursar writes itself.
    import_id     bigint      references bursar.import,
    -- The job of a carry: only that job takes it.
    job_id        bigint      references bursar.job,
    -- Set once and for ever.
    unit_id       bigint      references bursar.unit,
    withdrawn_at  timestamptz,
    -- Settled and taken back: its id is free again, its opposite stands in an adjustment.
    reverted_at   timestamptz,
    constraint entry_kind_and_signs check (
        case kind
            when 'capture' then amount >= 0
            when 'chargeback_reversal' then amount >= 0
            when 'refund' then amount <= 0
            when 'chargeback' then amount <= 0
            when 'fee' then amount <= 0 and fee = 0
            when 'adjustment' then true
            when 'carry' then fee = 0 and amount <> 0 and job_id is not null
            else false
        end),
    constraint entry_is_withdrawn_or_bound check (withdrawn_at is null or unit_id is null),
    constraint entry_own_or_imported check ((source = 'bursar') = (import_id is null))
);
create unique index entry_one_per_source_and_id on bursar.entry (source, external_id) where withdrawn_at is null and reverted_at is null;
create index entry_open on bursar.entry (merchant, currency, available_at) where unit_id is null and withdrawn_at is null;
create index entry_by_unit on bursar.entry (unit_id) where unit_id is not null;
create index entry_by_import on bursar.entry (import_id);

create function bursar.guard_entry() returns trigger language plpgsql as $$
begin
    if tg_op = 'DELETE' then
        raise exception 'entries are never deleted' using errcode = 'BU004';
    end if;
    if old.unit_id is not null and new.unit_id is distinct from old.unit_id then
        raise exception 'entry % is bound to unit % for ever', old.id, old.unit_id using errcode = 'BU004';
    end if;
    if (new.amount, new.fee, new.currency, new.merchant, new.kind, new.source) is distinct from
       (old.amount, old.fee, old.currency, old.merchant, old.kind, old.source) then
        raise exception 'entry %: no command edits money', old.id using errcode = 'BU004';
    end if;
    return new;
end $$;
create trigger entry_is_never_edited before update or delete on bursar.entry
    for each row execute function bursar.guard_entry();

create table bursar.journal (
    id        bigint      generated always as identity primary key,
    unit_id   bigint      not null references bursar.unit,
    run_id    bigint      not null references bursar.run,
    kind      text        not null constraint journal_kind_is_known check (kind in ('settle', 'paid', 'rejected', 'returned')),
    -- Several of one kind only where a unit was retried with a new generation.
    generation integer    not null default 0,
    election  text        not null,
    term      bigint      not null,
    posted_at timestamptz not null default clock_timestamp(),
    xact      xid8        not null default pg_current_xact_id(),
    constraint journal_one_per_unit_and_kind unique (unit_id, kind, generation)
);
create index journal_by_run on bursar.journal (run_id);

-- A line moves an amount above 0 from a debit to a credit account: balanced by construction.
create table bursar.posting (
    journal_id   bigint   not null references bursar.journal,
    seq          smallint not null,
    debit_kind   text     not null,
    debit_owner  text     collate "C" not null,
    credit_kind  text     not null,
    credit_owner text     collate "C" not null,
    currency     text     not null,
    amount       bigint   not null constraint posting_amount_is_positive check (amount > 0),
    primary key (journal_id, seq),
    constraint posting_accounts_are_known check (
        debit_kind in ('source_clearing', 'payable', 'fees', 'carry', 'payout_clearing', 'bank')
        and credit_kind in ('source_clearing', 'payable', 'fees', 'carry', 'payout_clearing', 'bank')),
    constraint posting_moves_something check ((debit_kind, debit_owner) <> (credit_kind, credit_owner))
);

-- The same lines with signs: credits above 0, debits below.
create view bursar.ledger_line as
    select p.journal_id, p.seq, p.debit_kind as kind, p.debit_owner as owner, p.currency, -p.amount as amount from bursar.posting p
    union all
    select p.journal_id, p.seq, p.credit_kind, p.credit_owner, p.currency, p.amount from bursar.posting p;

create table bursar.instruction (
    id                 bigint      generated always as identity primary key,
    unit_id            bigint      not null references bursar.unit,
    run_id             bigint      not null references bursar.run,
    job_id             bigint      not null references bursar.job,
    election           text        not null,
    kind               text        not null constraint instruction_kind_is_known check (kind in ('payout', 'call')),
    generation         integer     not null default 0,
    idempotency_key    text        collate "C" not null constraint instruction_key_is_unique unique,
    merchant           text        collate "C",
    currency           text,
    amount             bigint      constraint instruction_amount_is_positive check (amount > 0),
    body               bytea       not null,
    value_date         date,
    receiver           text,
    idempotent         boolean     not null default false,
    state              text        not null default 'pending' constraint instruction_state_is_known
        check (state in ('pending', 'sending', 'unknown', 'paid', 'rejected', 'held', 'returned')),
    reason             text,
    release            text        not null default 'auto' constraint instruction_release_is_known check (release in ('auto', 'waiting', 'released')),
    approval           text,
    attempts           integer     not null default 0,
    -- Once any try's outcome was unknown, for good.
    in_doubt           boolean     not null default false,
    first_sent_at      timestamptz,
    next_attempt_at    timestamptz,
    external_reference text,
    last_error         text,
    -- The term that wrote it, and the one that sends it.
    term               bigint      not null,
    sending_term       bigint,
    created_at         timestamptz not null default clock_timestamp(),
    final_at           timestamptz,
    xact               xid8        not null default pg_current_xact_id(),
    constraint instruction_one_per_unit_and_kind unique (unit_id, kind, generation),
    constraint instruction_final_is_whole check ((state in ('paid', 'rejected', 'returned')) = (final_at is not null)),
    constraint instruction_payout_has_an_amount check (kind <> 'payout' or (amount is not null and currency is not null and merchant is not null))
);
create index instruction_by_run on bursar.instruction (run_id);
create index instruction_unfinished on bursar.instruction (election, state) where state in ('pending', 'sending', 'unknown', 'held');

create function bursar.guard_instruction() returns trigger language plpgsql as $$
begin
    if tg_op = 'DELETE' then
        raise exception 'instructions are never deleted' using errcode = 'BU004';
    end if;
    if (new.idempotency_key, new.body, new.amount, new.currency, new.merchant, new.unit_id, new.kind, new.generation, new.value_date)
       is distinct from
       (old.idempotency_key, old.body, old.amount, old.currency, old.merchant, old.unit_id, old.kind, old.generation, old.value_date) then
        raise exception 'instruction %: key, body and amount are final once written', old.idempotency_key using errcode = 'BU004';
    end if;
    if old.in_doubt and not new.in_doubt then
        raise exception 'instruction %: a doubt is never forgotten', old.idempotency_key using errcode = 'BU004';
    end if;
    return new;
end $$;
create trigger instruction_is_final before update or delete on bursar.instruction
    for each row execute function bursar.guard_instruction();

create table bursar.receiver (
    origin     text        primary key,
    stopped_at timestamptz,
    reason     text,
    refusals   integer     not null default 0,
    term       bigint
);

create table bursar.merchant_hold (
    merchant text        collate "C" primary key,
    reason   text        not null,
    held_at  timestamptz not null default clock_timestamp(),
    act_id   bigint      not null references bursar.operator_act
);

-- The second line behind the fence: whoever inserts journals or instructions, their term must be the one in force.
create function bursar.guard_terms() returns trigger language plpgsql as $$
declare stale record;
begin
    for stale in select distinct n.election, n.term from new_rows n loop
        perform bursar.assert_term(stale.election, stale.term);
    end loop;
    return null;
end $$;
create trigger journal_is_fenced after insert on bursar.journal
    referencing new table as new_rows for each statement execute function bursar.guard_terms();
create trigger instruction_is_fenced after insert on bursar.instruction
    referencing new table as new_rows for each statement execute function bursar.guard_terms();

-- Journals and postings are history.
create function bursar.guard_history() returns trigger language plpgsql as $$
begin
    raise exception '% is never updated or deleted', tg_table_name using errcode = 'BU004';
end $$;
create trigger journal_is_history before update or delete on bursar.journal
    for each row execute function bursar.guard_history();
create trigger posting_is_history before update or delete on bursar.posting
    for each row execute function bursar.guard_history();

-- Nothing of the books is emptied either, and what was accepted stays on record.
create trigger journal_is_never_emptied before truncate on bursar.journal
    for each statement execute function bursar.guard_history();
create trigger posting_is_never_emptied before truncate on bursar.posting
    for each statement execute function bursar.guard_history();
create trigger entry_is_never_emptied before truncate on bursar.entry
    for each statement execute function bursar.guard_history();
create trigger instruction_is_never_emptied before truncate on bursar.instruction
    for each statement execute function bursar.guard_history();
create trigger term_history_is_never_emptied before truncate or delete on bursar.term_history
    for each statement execute function bursar.guard_history();

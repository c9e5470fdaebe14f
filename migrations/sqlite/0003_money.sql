-- Entries in, journals, instructions out. Amounts are whole minor units.

create table import (
    id            integer primary key,
    source        text    not null,
    file_name     text    not null,
    sha256        text    not null,
    profile       text,
    rows          integer not null,
    sums          text    not null constraint import_sums_are_json check (json_valid(sums)),
    act_id        integer not null references operator_act (id),
    at            integer not null,
    reverted_at   integer,
    revert_reason text,
    revert_act_id integer references operator_act (id)
) strict;
create index import_by_sha on import (source, sha256);

create table entry (
    id            integer primary key,
    source        text    not null,
    external_id   text    not null,
    merchant      text    not null constraint entry_merchant_is_bounded check (octet_length(merchant) between 1 and 128),
    currency      text    not null constraint entry_currency_is_a_code check (currency glob '[A-Z][A-Z][A-Z]'),
    kind          text    not null,
    amount        integer not null,
    fee           integer not null,
    occurred_at   integer not null,
    available_at  integer not null,
    reference     text,
    -- Null for what bursar writes itself.
    import_id     integer references import (id),
    -- The job of a carry: only that job takes it.
    job_id        integer references job (id),
    -- Set once and for ever.
    unit_id       integer references unit (id),
    withdrawn_at  integer,
    -- Settled and taken back: its id is free again, its opposite stands in an adjustment.
    reverted_at   integer,
    constraint entry_kind_and_signs check (
        case kind
            when 'capture' then amount >= 0
            when 'chargeback_reversal' then amount >= 0
            when 'refund' then amount <= 0
            when 'chargeback' then amount <= 0
            when 'fee' then amount <= 0 and fee = 0
            when 'adjustment' then 1
            when 'carry' then fee = 0 and amount <> 0 and job_id is not null
            else 0
        end),
    constraint entry_is_withdrawn_or_bound check (withdrawn_at is null or unit_id is null),
    constraint entry_own_or_imported check ((source = 'bursar') = (import_id is null))
) strict;
create unique index entry_one_per_source_and_id on entry (source, external_id) where withdrawn_at is null and reverted_at is null;
create index entry_open on entry (merchant, currency, available_at) where unit_id is null and withdrawn_at is null;
create index entry_by_unit on entry (unit_id) where unit_id is not null;
create index entry_by_import on entry (import_id);

create trigger entry_is_bound_for_ever before update of unit_id on entry
    when old.unit_id is not null and new.unit_id is not old.unit_id
begin
    select raise(abort, 'BU004: an entry is bound to its unit for ever');
end;
create trigger entry_is_never_edited before update of id, amount, fee, currency, merchant, kind, source on entry
    when (new.id, new.amount, new.fee, new.currency, new.merchant, new.kind, new.source)
         is not (old.id, old.amount, old.fee, old.currency, old.merchant, old.kind, old.source)
begin
    select raise(abort, 'BU004: no command edits money');
end;
create trigger entry_is_never_deleted before delete on entry
begin
    select raise(abort, 'BU004: entries are never deleted');
end;

create table journal (
    id         integer primary key,
    unit_id    integer not null references unit (id),
    run_id     integer not null references run (id),
    kind       text    not null constraint journal_kind_is_known check (kind in ('settle', 'paid', 'rejected', 'returned')),
    -- Several of one kind only where a unit was retried with a new generation.
    generation integer not null default 0,
    election   text    not null,
    term       integer not null,
    posted_at  integer not null,
    fenced_seq integer not null
) strict;
create unique index journal_one_per_unit_and_kind on journal (unit_id, kind, generation);
create index journal_by_run on journal (run_id);

-- A line moves an amount above 0 from a debit to a credit account: balanced by construction.
create table posting (
    journal_id   integer not null references journal (id),
    seq          integer not null,
    debit_kind   text    not null,
    debit_owner  text    not null,
    credit_kind  text    not null,
    credit_owner text    not null,
    currency     text    not null,
    amount       integer not null constraint posting_amount_is_positive check (amount > 0),
    primary key (journal_id, seq),
    constraint posting_accounts_are_known check (
        debit_kind in ('source_clearing', 'payable', 'fees', 'carry', 'payout_clearing', 'bank')
        and credit_kind in ('source_clearing', 'payable', 'fees', 'carry', 'payout_clearing', 'bank')),
    constraint posting_moves_something check ((debit_kind, debit_owner) <> (credit_kind, credit_owner))
) strict, without rowid;

-- The same lines with signs: credits above 0, debits below.
create view ledger_line as
    select p.journal_id, p.seq, p.debit_kind as kind, p.debit_owner as owner, p.currency, -p.amount as amount from posting p
    union all
    select p.journal_id, p.seq, p.credit_kind, p.credit_owner, p.currency, p.amount from posting p;

create table instruction (
    id                 integer primary key,
    unit_id            integer not null references unit (id),
    run_id             integer not null references run (id),
    job_id             integer not null references job (id),
    election           text    not null,
    kind               text    not null constraint instruction_kind_is_known check (kind in ('payout', 'call')),
    generation         integer not null default 0,
    idempotency_key    text    not null,
    merchant           text,
    currency           text,
    amount             integer constraint instruction_amount_is_positive check (amount > 0),
    body               blob    not null,
    value_date         text    constraint instruction_value_date_is_a_date check (value_date is null or date(value_date) is value_date),
    receiver           text,
    idempotent         integer not null default 0 constraint instruction_idempotent_is_a_truth check (idempotent in (0, 1)),
    state              text    not null default 'pending' constraint instruction_state_is_known
        check (state in ('pending', 'sending', 'unknown', 'paid', 'rejected', 'held', 'returned')),
    reason             text,
    release            text    not null default 'auto' constraint instruction_release_is_known check (release in ('auto', 'waiting', 'released')),
    approval           text,
    attempts           integer not null default 0,
    -- Once any try's outcome was unknown, for good.
    in_doubt           integer not null default 0 constraint instruction_in_doubt_is_a_truth check (in_doubt in (0, 1)),
    first_sent_at      integer,
    next_attempt_at    integer,
    external_reference text,
    last_error         text,
    -- The term that wrote it, and the one that sends it.
    term               integer not null,
    sending_term       integer,
    created_at         integer not null,
    final_at           integer,
    fenced_seq         integer not null,
    constraint instruction_final_is_whole check ((state in ('paid', 'rejected', 'returned')) = (final_at is not null)),
    constraint instruction_payout_has_an_amount check (kind <> 'payout' or (amount is not null and currency is not null and merchant is not null))
) strict;
create unique index instruction_one_per_unit_and_kind on instruction (unit_id, kind, generation);
create unique index instruction_key_is_unique on instruction (idempotency_key);
create index instruction_by_run on instruction (run_id);
create index instruction_unfinished on instruction (election, state) where state in ('pending', 'sending', 'unknown', 'held');

create trigger instruction_is_final
    before update of id, idempotency_key, body, amount, currency, merchant, unit_id, kind, generation, value_date on instruction
    when (new.id, new.idempotency_key, new.body, new.amount, new.currency, new.merchant, new.unit_id, new.kind, new.generation, new.value_date)
         is not
         (old.id, old.idempotency_key, old.body, old.amount, old.currency, old.merchant, old.unit_id, old.kind, old.generation, old.value_date)
begin
    select raise(abort, 'BU004: key, body and amount of an instruction are final once written');
end;
create trigger instruction_doubt_is_kept before update of in_doubt on instruction
    when old.in_doubt and not new.in_doubt
begin
    select raise(abort, 'BU004: a doubt of an instruction is never forgotten');
end;
create trigger instruction_is_never_deleted before delete on instruction
begin
    select raise(abort, 'BU004: instructions are never deleted');
end;

create table receiver (
    origin     text    primary key,
    stopped_at integer,
    reason     text,
    refusals   integer not null default 0,
    term       integer
) strict;

create table merchant_hold (
    merchant text    primary key,
    reason   text    not null,
    held_at  integer not null,
    act_id   integer not null references operator_act (id)
) strict;

-- The second line behind the fence: whoever inserts journals or instructions, their term must be the one in force.
create trigger journal_is_fenced before insert on journal
    when (select f.term from fence f where f.election = new.election) is not new.term
begin
    select raise(abort, 'BU003: fenced: another term is in force');
end;
create trigger instruction_is_fenced before insert on instruction
    when (select f.term from fence f where f.election = new.election) is not new.term
begin
    select raise(abort, 'BU003: fenced: another term is in force');
end;

-- Journals and postings are history.
create trigger journal_is_history before update on journal
begin
    select raise(abort, 'BU004: journal is never updated');
end;
create trigger journal_is_never_deleted before delete on journal
begin
    select raise(abort, 'BU004: journal is never deleted');
end;
create trigger posting_is_history before update on posting
begin
    select raise(abort, 'BU004: posting is never updated');
end;
create trigger posting_is_never_deleted before delete on posting
begin
    select raise(abort, 'BU004: posting is never deleted');
end;

-- A REPLACE deletes without asking the triggers before, unless its connection says recursive_triggers.
-- Each says what the constraint says that a REPLACE would have stepped over.
create trigger journal_is_never_replaced before insert on journal
    when exists (select 1 from journal j where j.id = new.id)
      or exists (select 1 from journal j where j.unit_id = new.unit_id and j.kind = new.kind and j.generation = new.generation)
begin
    select raise(abort, 'UNIQUE constraint failed: journal.unit_id, journal.kind, journal.generation');
end;
create trigger posting_is_never_replaced before insert on posting
    when exists (select 1 from posting p where p.journal_id = new.journal_id and p.seq = new.seq)
begin
    select raise(abort, 'UNIQUE constraint failed: posting.journal_id, posting.seq');
end;
create trigger instruction_is_never_replaced before insert on instruction
    when exists (select 1 from instruction i where i.id = new.id)
      or exists (select 1 from instruction i
                  where i.unit_id = new.unit_id and i.kind = new.kind and i.generation = new.generation)
begin
    select raise(abort, 'UNIQUE constraint failed: instruction.unit_id, instruction.kind, instruction.generation');
end;
create trigger instruction_key_is_never_replaced before insert on instruction
    when exists (select 1 from instruction i where i.idempotency_key = new.idempotency_key)
begin
    select raise(abort, 'UNIQUE constraint failed: instruction.idempotency_key');
end;
create trigger entry_is_never_replaced before insert on entry
    when exists (select 1 from entry e where e.id = new.id)
begin
    select raise(abort, 'BU004: entries are never replaced');
end;

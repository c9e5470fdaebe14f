-- The fence: what makes two leaders harmless. Whoever writes holds the file's one write lock (BEGIN IMMEDIATE), so that a
-- fence read in a transaction stays as it was read until that transaction ends.
-- Names are those of PostgreSQL, without its schema. Times are whole microseconds since the epoch, UTC; identities are
-- lower-case text with hyphens; truth is 0 or 1.

-- The store's time, and the only place that says how it is asked for. SQLite counts milliseconds.
create view clock (now) as select cast(round(unixepoch('subsec') * 1000) as integer) * 1000;

-- One row: who this deployment is and which coordinator hands out its terms. The file's identity is what a store is told
-- apart by where it is asked whether it is the one it was.
create table deployment (
    singleton          integer primary key default 1 constraint deployment_is_one_row check (singleton = 1),
    deployment_id      text    not null constraint deployment_id_is_an_id check (length(deployment_id) = 36),
    file_id            text    not null,
    coordinator_kind   text,
    coordinator_prefix text,
    created_at         integer not null
) strict;
insert into deployment (deployment_id, file_id, created_at)
select lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2) || '-'
             || substr('89ab', 1 + (random() & 3), 1) || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6))),
       lower(hex(randomblob(16))),
       now
  from clock;

-- Raised in every fenced transaction that writes, and when a claim is put in force: the order in which they committed.
create table fenced_seq (
    singleton integer primary key default 1 constraint fenced_seq_is_one_row check (singleton = 1),
    value     integer not null
) strict;
insert into fenced_seq (value) values (0);
create trigger fenced_seq_only_grows before update on fenced_seq
    when new.value <= old.value or new.singleton <> old.singleton
begin
    select raise(abort, 'BU001: the sequence of fenced transactions only grows');
end;
create trigger fenced_seq_is_never_deleted before delete on fenced_seq
begin
    select raise(abort, 'BU001: the sequence of fenced transactions is never deleted');
end;

-- One row per election: the highest term accepted, the tenure it was accepted from, and the halt.
create table fence (
    election    text    primary key constraint fence_election_is_a_name
        check (length(election) between 1 and 32 and election not glob '*[^a-z0-9-]*'),
    term        integer not null constraint fence_term_is_not_negative check (term >= 0),
    tenure_id   text    not null constraint fence_tenure_is_an_id check (length(tenure_id) = 36),
    accepted_at integer not null,
    halted_at   integer,
    halt_reason text,
    halted_by   text,
    constraint fence_halt_is_whole check ((halted_at is null) = (halt_reason is null) and (halted_at is null) = (halted_by is null))
) strict;
create trigger fence_is_never_lowered before update on fence
    when new.term < old.term or new.election <> old.election or (new.term = old.term and new.tenure_id <> old.tenure_id)
begin
    select raise(abort, 'BU001: the fence is never lowered');
end;
create trigger fence_is_never_deleted before delete on fence
begin
    select raise(abort, 'BU001: the fence is never deleted');
end;
-- A REPLACE deletes without asking the trigger before.
create trigger fence_is_never_replaced before insert on fence
    when exists (select 1 from fence f where f.election = new.election)
begin
    select raise(abort, 'BU001: the fence is never replaced');
end;

-- Every accepted term, with the number of the transaction that accepted it: whatever a lower term wrote has a smaller one
-- (the audit's proof of fencing).
create table term_history (
    election          text    not null,
    term              integer not null,
    tenure_id         text    not null constraint term_history_tenure_is_an_id check (length(tenure_id) = 36),
    replica           text    not null,
    host              text    not null,
    version           text    not null,
    role              text    not null default 'sqlite',
    accepted_at       integer not null,
    fenced_seq        integer not null,
    system_identifier text    not null,
    timeline          integer not null,
    worked_at         integer,
    ended_at          integer,
    end_reason        text,
    primary key (election, term, tenure_id)
) strict;
create trigger term_history_is_never_emptied before delete on term_history
begin
    select raise(abort, 'BU004: term_history is never deleted');
end;
create trigger term_history_is_never_replaced before insert on term_history
    when exists (select 1 from term_history h
                  where h.election = new.election and h.term = new.term and h.tenure_id = new.tenure_id)
begin
    select raise(abort, 'BU004: term_history is never replaced');
end;

-- Refusals, written after the rollback by whoever was refused, from a connection that belongs to no tenure. Unfenced.
create table fence_reject (
    id              integer primary key,
    election        text    not null,
    term            integer not null,
    tenure_id       text    not null,
    found_term      integer,
    found_tenure_id text,
    operation       text    not null,
    replica         text    not null,
    at              integer not null
) strict;
create index fence_reject_by_election on fence_reject (election, id);

-- Replicas that opened this file. A process is named by its boot, its number and when it started: a number alone may be
-- another's by now. Only one that is listed here is ever ended for holding the file's write lock.
create table process (
    boot_id    text    not null,
    pid        integer not null,
    started    integer not null,
    replica    text    not null,
    opened_at  integer not null,
    primary key (boot_id, pid, started)
) strict;

-- For the SQL of users and other services: INSERT INTO assert_term (election, term) fails unless the term is the one in
-- force, and inside of a transaction that began with BEGIN IMMEDIATE it stays so until the end.
create view assert_term (election, term) as select f.election, f.term from fence f;
create trigger assert_term_asserts instead of insert on assert_term
    when (select f.term from fence f where f.election = new.election) is not new.term
begin
    select raise(abort, 'BU003: fenced: another term is in force');
end;

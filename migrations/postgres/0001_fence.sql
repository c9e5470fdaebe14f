-- The fence: what makes two leaders harmless. Everything of bursar lives in the schema "bursar".
create schema if not exists bursar;

-- One row: who this deployment is and which coordinator hands out its terms.
create table bursar.deployment (
    singleton          boolean     primary key default true constraint deployment_is_one_row check (singleton),
    deployment_id      uuid        not null default gen_random_uuid(),
    coordinator_kind   text,
    coordinator_prefix text,
    created_at         timestamptz not null default clock_timestamp()
);
insert into bursar.deployment default values;

-- One row per election: the highest term accepted, the tenure it was accepted from, and the halt.
-- Written under the exclusive advisory lock only, in transactions that do nothing else.
create table bursar.fence (
    election    text        primary key constraint fence_election_is_a_name check (election ~ '^[a-z0-9-]{1,32}$'),
    term        bigint      not null constraint fence_term_is_not_negative check (term >= 0),
    tenure_id   uuid        not null,
    accepted_at timestamptz not null default clock_timestamp(),
    halted_at   timestamptz,
    halt_reason text,
    halted_by   text,
    constraint fence_halt_is_whole check ((halted_at is null) = (halt_reason is null) and (halted_at is null) = (halted_by is null))
);

create function bursar.guard_fence() returns trigger language plpgsql as $$
begin
    if tg_op = 'DELETE' or tg_op = 'TRUNCATE' then
        raise exception 'the fence is never deleted' using errcode = 'BU001';
    end if;
    if new.term < old.term or new.election <> old.election
       or (new.term = old.term and new.tenure_id <> old.tenure_id) then
        raise exception 'the fence of % stays at term % of tenure %: it is never lowered', old.election, old.term, old.tenure_id
            using errcode = 'BU001';
    end if;
    return new;
end $$;
create trigger fence_is_never_lowered before update or delete on bursar.fence
    for each row execute function bursar.guard_fence();
create trigger fence_is_never_emptied before truncate on bursar.fence
    for each statement execute function bursar.guard_fence();

-- Every accepted term. The snapshot is taken by the transaction that accepted it, after it held the exclusive lock: whatever
-- a lower term wrote must be visible in it (the audit's proof of fencing).
create table bursar.term_history (
    election          text        not null,
    term              bigint      not null,
    tenure_id         uuid        not null,
    replica           text        not null,
    host              text        not null,
    version           text        not null,
    -- The database role of its sessions: whoever advances past it must be allowed to end them.
    role              text        not null default session_user,
    accepted_at       timestamptz not null default clock_timestamp(),
    snapshot          pg_snapshot not null default pg_current_snapshot(),
    system_identifier text        not null,
    timeline          integer     not null,
    worked_at         timestamptz,
    ended_at          timestamptz,
    end_reason        text,
    primary key (election, term, tenure_id)
);

-- Refusals, written after the rollback by whoever was refused, from a pool that belongs to no tenure. Unfenced.
create table bursar.fence_reject (
    id              bigint      generated always as identity primary key,
    election        text        not null,
    term            bigint      not null,
    tenure_id       uuid        not null,
    found_term      bigint,
    found_tenure_id uuid,
    operation       text        not null,
    replica         text        not null,
    at              timestamptz not null default clock_timestamp()
);
create index fence_reject_by_election on bursar.fence_reject (election, id);

-- The advisory lock of an election: shared by every transaction of a tenure, exclusive for whoever advances, halts or resumes.
-- The first key keeps clear of other users of advisory locks.
create function bursar.gate(election text) returns bigint language sql immutable strict parallel safe as $$
    select ('x' || substr(encode(sha256(convert_to('bursar.gate/' || election, 'UTF8')), 'hex'), 1, 16))::bit(64)::bigint
$$;

-- Enters the fence: the first call of every transaction of a tenure, before any savepoint. VOLATILE, so that the read after
-- the lock has a snapshot of its own under READ COMMITTED; under any other isolation it would not, so that is refused.
-- kind: 'begin' (refused where halted), 'record' and 'act' (not).
-- outcome: 'mine', 'fenced', 'halted'.
create function bursar.enter(
    in_election text, in_term bigint, in_tenure uuid, in_kind text,
    out outcome text, out found_term bigint, out found_tenure uuid,
    out halt_reason text, out halted_at timestamptz, out halted_by text
) language plpgsql volatile as $$
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        raise exception 'a fenced transaction is READ COMMITTED, not %', current_setting('transaction_isolation')
            using errcode = 'BU002';
    end if;
    if in_kind not in ('begin', 'record', 'act') then
        raise exception 'unknown kind of fenced transaction %', in_kind using errcode = 'BU002';
    end if;
    perform pg_advisory_xact_lock_shared(bursar.gate(in_election));
    select f.term, f.tenure_id, f.halt_reason, f.halted_at, f.halted_by
      into found_term, found_tenure, halt_reason, halted_at, halted_by
      from bursar.fence f where f.election = in_election;
    if found_term is distinct from in_term or found_tenure is distinct from in_tenure then
        outcome := 'fenced';
    elsif in_kind = 'begin' and halted_at is not null then
        outcome := 'halted';
    else
        outcome := 'mine';
    end if;
end $$;

-- For guard triggers, and for the SQL of users and other services: raises unless the term is the one in force.
-- Takes the shared lock itself, so that it holds until the transaction's end.
create function bursar.assert_term(in_election text, in_term bigint) returns void language plpgsql volatile as $$
declare found bigint;
begin
    perform pg_advisory_xact_lock_shared(bursar.gate(in_election));
    select f.term into found from bursar.fence f where f.election = in_election;
    if found is distinct from in_term then
        raise exception 'fenced: term % of election % was presented, % is in force', in_term, in_election, found
            using errcode = 'BU003';
    end if;
end $$;

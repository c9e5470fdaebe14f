-- The coordinator in the database: leases and elections, for deployments without etcd. Tables of its own, never the fence:
-- what is here is for liveness, and may be lost.
--
-- Every operation is one function, so one statement: a replica that is stopped holds no lock here. Each takes its row locks
-- first, the election's before leases and leases by id, and reads the clock in a statement after them. The clock is
-- clock_timestamp(): now() would be that of the transaction's start, before the wait for the lock.

-- One row per session. A lease lives until expires_at; from then on it counts as gone, and everything that stands on it too,
-- whoever looks. It is never revived.
create table bursar.coordinator_lease (
    id         bigint      primary key constraint coordinator_lease_id_is_one check (id <> 0),
    ttl        interval    not null constraint coordinator_lease_ttl_is_positive check (ttl > interval '0'),
    expires_at timestamptz not null
);

-- One row per election. revision counts the changes of the two keys in steps of two: a lapse, which nobody writes, counts as
-- one step from there. leader_lease 0 is a leader that stands without a lease, put by hand.
create table bursar.coordinator_election (
    name            text   primary key constraint coordinator_election_is_a_name check (name ~ '^[a-z0-9-]{1,32}$'),
    revision        bigint not null default 0,
    term            bigint not null default 0,
    term_revision   bigint not null default 0,
    leader          text,
    leader_lease    bigint,
    leader_revision bigint,
    accepted        text,
    constraint coordinator_election_leader_is_whole
        check ((leader is null) = (leader_lease is null) and (leader is null) = (leader_revision is null))
);

create function bursar.guard_coordinator_election() returns trigger language plpgsql as $$
begin
    if new.term < old.term then
        raise exception 'the term issued for % stays at %: it is never lowered', old.name, old.term using errcode = 'BU001';
    end if;
    return new;
end $$;
create trigger coordinator_election_is_never_lowered before update on bursar.coordinator_election
    for each row execute function bursar.guard_coordinator_election();

-- Who is there.
create table bursar.coordinator_replica (
    id     text   primary key,
    lease  bigint not null,
    record text   not null
);

-- Whether a lease lives now.
create function bursar.coordinator_lives(in_lease bigint) returns boolean language plpgsql volatile as $$
begin
    return exists (select from bursar.coordinator_lease l where l.id = in_lease and l.expires_at > clock_timestamp());
end $$;

-- Caps leases that would live beyond now + their time to live: the clock was stepped back. Whoever sees one calls this. Locks
-- what is free only, so that it waits for nobody.
create function bursar.coordinator_cap() returns void language plpgsql volatile as $$
begin
    update bursar.coordinator_lease l set expires_at = clock_timestamp() + l.ttl
     where l.id in (select s.id from bursar.coordinator_lease s where s.expires_at > clock_timestamp() + s.ttl
                     order by s.id for update skip locked);
end $$;

-- An election as it stands; a leader on a lapsed lease is absent. read_at is the revision that this read shows.
create function bursar.coordinator_state(
    in_election text,
    out read_at bigint, out term bigint, out term_revision bigint,
    out leader text, out leader_lease bigint, out leader_revision bigint
) language plpgsql volatile as $$
declare
    lease_lives boolean;
    lease_is_stepped boolean;
begin
    select e.revision, e.term, e.term_revision, e.leader, e.leader_lease, e.leader_revision,
           e.leader_lease = 0 or coalesce(l.expires_at > clock_timestamp(), false),
           coalesce(l.expires_at > clock_timestamp() + l.ttl, false)
      into read_at, term, term_revision, leader, leader_lease, leader_revision, lease_lives, lease_is_stepped
      from bursar.coordinator_election e left join bursar.coordinator_lease l on l.id = e.leader_lease
     where e.name = in_election;
    if not found then
        read_at := 0;
        term := 0;
        term_revision := 0;
    elsif leader is not null and not lease_lives then
        read_at := read_at + 1;
        leader := null;
        leader_lease := null;
        leader_revision := null;
    elsif lease_is_stepped then
        perform bursar.coordinator_cap();
    end if;
end $$;

-- Locks what a change of an election depends on: its row, which is made where it is missing, then its leader's lease and the
-- one that is to be stood on, by id. A renewal that is under way is over when this returns, one that comes later waits.
create function bursar.coordinator_lock(in_election text, in_lease bigint) returns void language plpgsql volatile as $$
begin
    if current_setting('transaction_isolation') <> 'read committed' then
        raise exception 'an operation of the coordinator is READ COMMITTED, not %', current_setting('transaction_isolation')
            using errcode = 'BU002';
    end if;
    insert into bursar.coordinator_election (name) values (in_election) on conflict (name) do nothing;
    perform from bursar.coordinator_election e where e.name = in_election for update;
    perform from bursar.coordinator_lease l
      where l.id = in_lease or l.id = (select e.leader_lease from bursar.coordinator_election e where e.name = in_election)
      order by l.id for update;
end $$;

-- Grants a lease, and tidies away what lapsed an hour ago.
create function bursar.coordinator_grant(in_lease bigint, in_ttl interval) returns void language plpgsql volatile as $$
begin
    delete from bursar.coordinator_lease l
     where l.id in (select s.id from bursar.coordinator_lease s where s.expires_at < clock_timestamp() - interval '1 hour'
                     order by s.id for update skip locked);
    delete from bursar.coordinator_replica r
     where r.id in (select s.id from bursar.coordinator_replica s
                     where not exists (select from bursar.coordinator_lease l where l.id = s.lease)
                     order by s.id for update skip locked);
    insert into bursar.coordinator_lease (id, ttl, expires_at) values (in_lease, in_ttl, clock_timestamp() + in_ttl);
end $$;

-- Renews a lease that lives; null where it does not. The lock first, then the clock.
create function bursar.coordinator_renew(in_lease bigint) returns interval language plpgsql volatile as $$
declare renewed interval;
begin
    perform from bursar.coordinator_lease l where l.id = in_lease for update;
    update bursar.coordinator_lease l set expires_at = clock_timestamp() + l.ttl
     where l.id = in_lease and l.expires_at > clock_timestamp()
     returning l.ttl into renewed;
    return renewed;
end $$;

-- Revokes a lease: what stands on it is absent with it. Says whether it lived.
create function bursar.coordinator_revoke(in_lease bigint) returns boolean language plpgsql volatile as $$
declare lived boolean;
begin
    perform from bursar.coordinator_lease l where l.id = in_lease for update;
    lived := bursar.coordinator_lives(in_lease);
    delete from bursar.coordinator_lease l where l.id = in_lease;
    delete from bursar.coordinator_replica r where r.lease = in_lease;
    return lived;
end $$;

-- Puts term and leader if the place is vacant as it was seen, the term key is as it was seen, and the lease lives. A vacancy of
-- revision null is an absent leader; else one without a lease, of that revision. outcome: 'won', 'lost', 'lease gone'; the rest
-- is the election as it stands then.
create function bursar.coordinator_campaign(
    in_election text, in_vacancy bigint, in_term_revision bigint, in_term bigint, in_leader text, in_lease bigint,
    out outcome text, out read_at bigint, out term bigint, out term_revision bigint,
    out leader text, out leader_lease bigint, out leader_revision bigint
) language plpgsql volatile as $$
declare
    seen record;
    lapsed bigint;
begin
    perform bursar.coordinator_lock(in_election, in_lease);
    seen := bursar.coordinator_state(in_election);
    if seen.term_revision <> in_term_revision or seen.term >= in_term
       or (in_vacancy is null and seen.leader is not null)
       or (in_vacancy is not null and (seen.leader_lease is distinct from 0 or seen.leader_revision <> in_vacancy)) then
        outcome := 'lost';
    elsif not bursar.coordinator_lives(in_lease) then
        outcome := 'lease gone';
    else
        select e.leader_lease into lapsed from bursar.coordinator_election e where e.name = in_election;
        update bursar.coordinator_election e
           set revision = e.revision + 2, term = in_term, term_revision = e.revision + 2,
               leader = in_leader, leader_lease = in_lease, leader_revision = e.revision + 2
         where e.name = in_election and e.term_revision = in_term_revision and e.term < in_term
           and (e.leader is null
                or (in_vacancy is null and e.leader_lease <> 0 and not bursar.coordinator_lives(e.leader_lease))
                or (e.leader_lease = 0 and e.leader_revision = in_vacancy));
        outcome := case when found then 'won' else 'lost' end;
        if found then
            -- What was found lapsed and acted upon stays so, also when the clock is stepped back.
            delete from bursar.coordinator_lease l where l.id = lapsed and l.id <> in_lease;
        end if;
        seen := bursar.coordinator_state(in_election);
    end if;
    read_at := seen.read_at;
    term := seen.term;
    term_revision := seen.term_revision;
    leader := seen.leader;
    leader_lease := seen.leader_lease;
    leader_revision := seen.leader_revision;
end $$;

-- Takes the leader away if it is from that win; else nothing is changed. The rest is the election as it stands then.
create function bursar.coordinator_resign(
    in_election text, in_won bigint,
    out resigned boolean, out read_at bigint, out term bigint, out term_revision bigint,
    out leader text, out leader_lease bigint, out leader_revision bigint
) language plpgsql volatile as $$
declare seen record;
begin
    perform bursar.coordinator_lock(in_election, 0);
    seen := bursar.coordinator_state(in_election);
    resigned := seen.leader_revision is not distinct from in_won;
    if resigned then
        update bursar.coordinator_election e
           set revision = e.revision + 2, leader = null, leader_lease = null, leader_revision = null
         where e.name = in_election and e.leader_revision = in_won;
        seen := bursar.coordinator_state(in_election);
    end if;
    read_at := seen.read_at;
    term := seen.term;
    term_revision := seen.term_revision;
    leader := seen.leader;
    leader_lease := seen.leader_lease;
    leader_revision := seen.leader_revision;
end $$;

-- Puts the successor if the leader is from that win, the term key is as it was seen, and the successor is registered on a lease
-- that lives. The rest is the election as it stands then.
create function bursar.coordinator_transfer(
    in_election text, in_won bigint, in_term_revision bigint, in_term bigint,
    in_successor text, in_leader text, in_lease bigint,
    out transferred boolean, out read_at bigint, out term bigint, out term_revision bigint,
    out leader text, out leader_lease bigint, out leader_revision bigint
) language plpgsql volatile as $$
declare seen record;
begin
    perform bursar.coordinator_lock(in_election, in_lease);
    seen := bursar.coordinator_state(in_election);
    transferred := seen.leader_revision is not distinct from in_won
        and seen.term_revision = in_term_revision and seen.term < in_term
        and exists (select from bursar.coordinator_replica r where r.id = in_successor and r.lease = in_lease)
        and bursar.coordinator_lives(in_lease);
    if transferred then
        update bursar.coordinator_election e
           set revision = e.revision + 2, term = in_term, term_revision = e.revision + 2,
               leader = in_leader, leader_lease = in_lease, leader_revision = e.revision + 2
         where e.name = in_election and e.leader_revision = in_won and e.term_revision = in_term_revision;
        seen := bursar.coordinator_state(in_election);
    end if;
    read_at := seen.read_at;
    term := seen.term;
    term_revision := seen.term_revision;
    leader := seen.leader;
    leader_lease := seen.leader_lease;
    leader_revision := seen.leader_revision;
end $$;

-- Notes what the store was accepted as, if the leader is from that win. It outlives the leader, and is no change of its key.
create function bursar.coordinator_accept(
    in_election text, in_won bigint, in_accepted text,
    out noted boolean, out read_at bigint, out term bigint, out term_revision bigint,
    out leader text, out leader_lease bigint, out leader_revision bigint
) language plpgsql volatile as $$
declare seen record;
begin
    perform bursar.coordinator_lock(in_election, 0);
    seen := bursar.coordinator_state(in_election);
    noted := seen.leader_revision is not distinct from in_won;
    if noted then
        update bursar.coordinator_election e set accepted = in_accepted
         where e.name = in_election and e.leader_revision = in_won;
    end if;
    read_at := seen.read_at;
    term := seen.term;
    term_revision := seen.term_revision;
    leader := seen.leader;
    leader_lease := seen.leader_lease;
    leader_revision := seen.leader_revision;
end $$;

-- Lifts the term issued to at least in_least, so that the next one is above it; answers the term that then counts as issued.
create function bursar.coordinator_lift(in_election text, in_least bigint) returns bigint language plpgsql volatile as $$
declare issued bigint;
begin
    perform bursar.coordinator_lock(in_election, 0);
    update bursar.coordinator_election e
       set revision = e.revision + 2, term = in_least, term_revision = e.revision + 2
     where e.name = in_election and e.term < in_least;
    select e.term into issued from bursar.coordinator_election e where e.name = in_election;
    return issued;
end $$;

-- Registers a replica on a lease that lives. Shared: many may stand on one.
create function bursar.coordinator_register(in_replica text, in_lease bigint, in_record text)
    returns boolean language plpgsql volatile as $$
begin
    perform from bursar.coordinator_lease l where l.id = in_lease for share;
    if not bursar.coordinator_lives(in_lease) then
        return false;
    end if;
    insert into bursar.coordinator_replica (id, lease, record) values (in_replica, in_lease, in_record)
        on conflict (id) do update set lease = excluded.lease, record = excluded.record;
    return true;
end $$;

-- The records of those whose lease lives.
create function bursar.coordinator_replicas(in_most integer) returns table (record text) language plpgsql volatile as $$
begin
    if exists (select from bursar.coordinator_lease l where l.expires_at > clock_timestamp() + l.ttl) then
        perform bursar.coordinator_cap();
    end if;
    return query
        select r.record from bursar.coordinator_replica r join bursar.coordinator_lease l on l.id = r.lease
         where l.expires_at > clock_timestamp() order by r.id limit in_most;
end $$;

-- A win is told by its revision and its lease. A revision alone is not enough: after a restore of the database it counts on from
-- an earlier one, and a revision that one replica won at before is won at by another. Leases are random and never the same.
-- Beside the functions of 0004, which a release that is still running calls: they have one argument less.

-- Takes the leader away if it is from that win; else nothing is changed. The rest is the election as it stands then.
create function bursar.coordinator_resign(
    in_election text, in_won bigint, in_won_lease bigint,
    out resigned boolean, out read_at bigint, out term bigint, out term_revision bigint,
    out leader text, out leader_lease bigint, out leader_revision bigint
) language plpgsql volatile as $$
declare seen record;
begin
    perform bursar.coordinator_lock(in_election, 0);
    seen := bursar.coordinator_state(in_election);
    resigned := seen.leader_revision is not distinct from in_won and seen.leader_lease is not distinct from in_won_lease;
    if resigned then
        update bursar.coordinator_election e
           set revision = e.revision + 2, leader = null, leader_lease = null, leader_revision = null
         where e.name = in_election and e.leader_revision = in_won and e.leader_lease = in_won_lease;
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
    in_election text, in_won bigint, in_won_lease bigint, in_term_revision bigint, in_term bigint,
    in_successor text, in_leader text, in_lease bigint,
    out transferred boolean, out read_at bigint, out term bigint, out term_revision bigint,
    out leader text, out leader_lease bigint, out leader_revision bigint
) language plpgsql volatile as $$
declare seen record;
begin
    perform bursar.coordinator_lock(in_election, in_lease);
    seen := bursar.coordinator_state(in_election);
    transferred := seen.leader_revision is not distinct from in_won and seen.leader_lease is not distinct from in_won_lease
        and seen.term_revision = in_term_revision and seen.term < in_term
        and exists (select from bursar.coordinator_replica r where r.id = in_successor and r.lease = in_lease)
        and bursar.coordinator_lives(in_lease);
    if transferred then
        update bursar.coordinator_election e
           set revision = e.revision + 2, term = in_term, term_revision = e.revision + 2,
               leader = in_leader, leader_lease = in_lease, leader_revision = e.revision + 2
         where e.name = in_election and e.leader_revision = in_won and e.leader_lease = in_won_lease
           and e.term_revision = in_term_revision;
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
    in_election text, in_won bigint, in_won_lease bigint, in_accepted text,
    out noted boolean, out read_at bigint, out term bigint, out term_revision bigint,
    out leader text, out leader_lease bigint, out leader_revision bigint
) language plpgsql volatile as $$
declare seen record;
begin
    perform bursar.coordinator_lock(in_election, 0);
    seen := bursar.coordinator_state(in_election);
    noted := seen.leader_revision is not distinct from in_won and seen.leader_lease is not distinct from in_won_lease;
    if noted then
        update bursar.coordinator_election e set accepted = in_accepted
         where e.name = in_election and e.leader_revision = in_won and e.leader_lease = in_won_lease;
    end if;
    read_at := seen.read_at;
    term := seen.term;
    term_revision := seen.term_revision;
    leader := seen.leader;
    leader_lease := seen.leader_lease;
    leader_revision := seen.leader_revision;
end $$;

//! Observing, standing, winning, losing, and not knowing which.

use super::*;
use crate::leadership::machine::{FENCE_READ_LIMIT, FIRST_RETRY, LONGEST_JITTER};

#[test]
fn the_term_is_above_both_the_coordinators_and_the_fences() {
    for (fence, expected) in [(0, 4), (3, 4), (8, 9)] {
        let (mut rig, commands) = Rig::with_session();
        let (_, claim) = rig.campaign("settlement", reading(&commands, "settlement"), fence);
        assert_eq!(claim.term, term(expected), "fence {fence}");
    }
}

#[test]
fn a_leader_is_watched_from_the_read_on_and_read_again_within_a_fifth_of_the_ttl() {
    let (mut rig, commands) = Rig::with_session();
    rig.eligible("settlement");
    let state = led(&others_claim("settlement", 3), "other", OTHERS_LEASE, 12);
    let op = reading(&commands, "settlement");
    let commands = rig.event(Event::Read(op, election("settlement"), Ok(state)));
    assert!(
        commands.contains(&Command::Watch { election: election("settlement"), from: Revision(13) }),
        "{commands:?}"
    );
    let commands = rig.pass(1000);
    reading(&commands, "settlement");
    assert!(!commands.iter().any(|c| matches!(c, Command::Watch { .. })), "one watch is enough");
}

#[test]
fn whom_it_follows_is_noted_once_for_each_tenure_of_another() {
    let (mut rig, commands) = Rig::with_session();
    let name = election("settlement");
    let mut op = reading(&commands, "settlement");
    for (number, tenure, news) in [(3, 1, true), (3, 1, false), (4, 2, true)] {
        let claim = Claim { tenure_id: TenureId(Uuid::from_u128(tenure)), ..others_claim("settlement", number) };
        let state = led(&claim, "other", OTHERS_LEASE, 12);
        let commands = rig.event(Event::Read(op, name.clone(), Ok(state)));
        let follows = |note: &Note| matches!(note, Note::Follows { term: of, .. } if *of == term(number));
        assert_eq!(noted(&commands, follows), news, "term {number}: {commands:?}");
        op = reading(&rig.event(Event::Woken(name.clone())), "settlement");
    }
    // A record of its own from an earlier lease.
    let state = led(&others_claim("settlement", 5), "me", OTHERS_LEASE, 14);
    let commands = rig.event(Event::Read(op, name, Ok(state)));
    assert!(!noted(&commands, |note| matches!(note, Note::Follows { .. })), "nobody follows itself");
}

#[test]
fn a_watch_that_cannot_be_opened_is_opened_again_less_and_less_often_until_one_works() {
    let (mut rig, commands) = Rig::with_session();
    let name = election("settlement");
    let state = led(&others_claim("settlement", 3), "other", OTHERS_LEASE, 12);
    let mut op = reading(&commands, "settlement");
    let mut reads = 0;
    let until = rig.now + Duration::from_secs(3);
    while rig.now < until {
        let commands = rig.event(Event::Read(op, name.clone(), Ok(state.clone())));
        assert!(commands.iter().any(|c| matches!(c, Command::Watch { .. })), "{commands:?}");
        rig.event(Event::WatchEnded(name.clone()));
        reads += 1;
        op = loop {
            let (at, _) = rig.machine.deadline().expect("the next read");
            rig.now = rig.now.max(at);
            let commands = rig.event(Event::Wake);
            if commands.iter().any(|c| matches!(c, Command::Read { .. })) {
                break reading(&commands, "settlement");
            }
        };
    }
    assert!(reads <= 10, "{reads} reads in three seconds");
    rig.event(Event::Read(op, name.clone(), Ok(state.clone())));
    let op = reading(&rig.event(Event::Woken(name.clone())), "settlement");
    rig.event(Event::Read(op, name.clone(), Ok(state)));
    let ended_at = rig.now;
    rig.event(Event::WatchEnded(name));
    let (at, _) = rig.machine.deadline().expect("the next read");
    assert!(at.since(ended_at) <= FIRST_RETRY, "after one that worked it starts over");
}

#[test]
fn a_wake_up_is_only_a_reason_to_read() {
    let (mut rig, commands) = Rig::with_session();
    rig.eligible("settlement");
    let state = led(&others_claim("settlement", 3), "other", OTHERS_LEASE, 12);
    rig.event(Event::Read(reading(&commands, "settlement"), election("settlement"), Ok(state)));
    let commands = rig.event(Event::Woken(election("settlement")));
    let op = reading(&commands, "settlement");
    assert!(!commands.iter().any(|c| matches!(c, Command::ReadFence { .. })));
    // Woken again while that read is under way: what it shows may be older than the second change.
    assert!(rig.event(Event::Woken(election("settlement"))).is_empty());
    let state = led(&others_claim("settlement", 4), "third", LeaseId(5), 15);
    let commands = rig.event(Event::Read(op, election("settlement"), Ok(state)));
    reading(&commands, "settlement");
}

#[test]
fn from_the_leaders_end_seen_to_the_campaign_there_is_one_read_one_jitter_and_the_fence() {
    let (mut rig, commands) = Rig::with_session();
    rig.eligible("settlement");
    let state = led(&others_claim("settlement", 3), "other", OTHERS_LEASE, 12);
    rig.event(Event::Read(reading(&commands, "settlement"), election("settlement"), Ok(state)));
    let seen_at = rig.now;
    let op = reading(&rig.event(Event::Woken(election("settlement"))), "settlement");
    rig.event(Event::Read(op, election("settlement"), Ok(vacant(3, 13))));
    let (at, _) = rig.machine.deadline().expect("the jitter");
    assert!(at.since(seen_at) <= LONGEST_JITTER);
    assert!(at.since(seen_at) <= Duration::from_millis(1), "one replica, one millisecond");
    let commands = rig.pass(2);
    assert!(commands.contains(&Command::ReadFence { election: election("settlement") }));
}

#[test]
fn someone_else_who_wins_meanwhile_is_seen_before_the_campaign() {
    let (mut rig, commands) = Rig::with_session();
    rig.eligible("settlement");
    rig.event(Event::Read(reading(&commands, "settlement"), election("settlement"), Ok(vacant(3, 10))));
    let op = reading(&rig.event(Event::Woken(election("settlement"))), "settlement");
    rig.pass(10);
    let state = led(&others_claim("settlement", 4), "other", OTHERS_LEASE, 12);
    rig.event(Event::Read(op, election("settlement"), Ok(state)));
    let commands = rig.report(Report::FenceTerm { election: election("settlement"), term: Ok(term(0)) });
    assert!(commands.is_empty(), "{commands:?}");
}

#[test]
fn a_lost_campaign_goes_back_to_observing_what_it_found() {
    let (mut rig, commands) = Rig::with_session();
    let (op, _) = rig.campaign("settlement", reading(&commands, "settlement"), 0);
    let state = led(&others_claim("settlement", 4), "other", OTHERS_LEASE, 12);
    let commands = rig.event(Event::Campaigned(op, election("settlement"), Ok(Campaigned::Lost(state))));
    assert!(!commands.iter().any(|c| matches!(c, Command::Begin { .. })));
    let view = rig.machine.view(Members::default());
    let seen = view.elections[0].leader.as_ref().expect("the leader found");
    assert_eq!(seen.leader_id, replica("other"));
}

#[test]
fn an_unknown_campaign_is_settled_by_reading_and_a_win_is_taken_up() {
    let (mut rig, commands) = Rig::with_session();
    let (op, claim) = rig.campaign("settlement", reading(&commands, "settlement"), 0);
    let commands = rig.event(Event::Campaigned(op, election("settlement"), Err(Failed)));
    assert!(!commands.iter().any(|c| matches!(c, Command::Begin { .. })), "never assumed");
    let read = reading(&commands, "settlement");
    let commands = rig.event(Event::Read(read, election("settlement"), Ok(led(&claim, "me", LEASE, 20))));
    assert!(
        commands.iter().any(|c| matches!(c, Command::Begin { claim: begun, won: Revision(20), .. } if *begun == claim)),
        "{commands:?}"
    );
    // The answer itself, come late: nothing begins twice.
    let late = Campaigned::Won { revision: Revision(20), record: record_of(&claim, "me", LEASE) };
    assert!(rig.event(Event::Campaigned(op, election("settlement"), Ok(late))).is_empty());
}

#[test]
fn an_unknown_campaign_that_was_not_done_is_tried_again() {
    let (mut rig, commands) = Rig::with_session();
    let (op, _) = rig.campaign("settlement", reading(&commands, "settlement"), 0);
    let commands = rig.event(Event::Campaigned(op, election("settlement"), Err(Failed)));
    let read = reading(&commands, "settlement");
    rig.event(Event::Read(read, election("settlement"), Ok(vacant(3, 10))));
    let commands = rig.pass(10);
    assert!(commands.contains(&Command::ReadFence { election: election("settlement") }), "{commands:?}");
}

#[test]
fn a_record_is_ones_own_only_with_ones_id_and_ones_live_lease() {
    let claim = others_claim("settlement", 4);
    for (leader, lease, begins) in
        [("me", LEASE, true), ("me", LeaseId(76), false), ("other", LEASE, false), ("other", OTHERS_LEASE, false)]
    {
        let (mut rig, commands) = Rig::with_session();
        rig.eligible("settlement");
        let read = reading(&commands, "settlement");
        let commands = rig.event(Event::Read(read, election("settlement"), Ok(led(&claim, leader, lease, 12))));
        let begun = commands.iter().any(|c| matches!(c, Command::Begin { .. }));
        assert_eq!(begun, begins, "{leader} on {lease}: {commands:?}");
    }
}

#[test]
fn a_record_on_ones_lease_is_given_up_by_one_who_may_not_lead() {
    let (mut rig, commands) = Rig::with_session();
    let state = led(&others_claim("settlement", 4), "me", LEASE, 12);
    let read = reading(&commands, "settlement");
    let commands = rig.event(Event::Read(read, election("settlement"), Ok(state)));
    assert_eq!(resigning(&commands).1.revision, Revision(12));
}

#[test]
fn a_key_on_ones_lease_that_is_nobodys_is_deleted_at_the_revision_read_with_an_alert() {
    for may_lead in [true, false] {
        let (mut rig, commands) = Rig::with_session();
        if may_lead {
            rig.eligible("settlement");
        }
        let mut state = vacant(3, 10);
        state.leader = Some(SeenLeader { record: None, revision: Revision(14), lease: LEASE });
        let commands = rig.event(Event::Read(reading(&commands, "settlement"), election("settlement"), Ok(state)));
        assert!(noted(&commands, |n| matches!(n, Note::StrangeLeader { .. })), "{commands:?}");
        assert_eq!(resigning(&commands).1.revision, Revision(14));
    }
}

#[test]
fn a_key_without_a_lease_counts_as_absent_at_the_revision_read_with_an_alert() {
    let (mut rig, commands) = Rig::with_session();
    rig.eligible("settlement");
    let mut state = vacant(3, 10);
    state.leader = Some(SeenLeader { record: None, revision: Revision(14), lease: LeaseId::NONE });
    let commands = rig.event(Event::Read(reading(&commands, "settlement"), election("settlement"), Ok(state)));
    assert!(noted(&commands, |n| matches!(n, Note::LeaselessLeader { .. })));
    rig.pass(10);
    let commands = rig.report(Report::FenceTerm { election: election("settlement"), term: Ok(term(0)) });
    assert!(
        commands.iter().any(|c| matches!(c, Command::Campaign { vacancy: Vacancy::Leaseless(Revision(14)), .. })),
        "{commands:?}"
    );
}

#[test]
fn nobody_stands_without_being_eligible_or_on_a_session_in_doubt() {
    let (mut rig, commands) = Rig::with_session();
    let read = reading(&commands, "settlement");
    rig.event(Event::Read(read, election("settlement"), Ok(vacant(3, 10))));
    assert!(!rig.pass(20).iter().any(|c| matches!(c, Command::ReadFence { .. })), "not eligible");
    let renewal = renewing(&rig.pass(980));
    rig.event(Event::Renewed(renewal, Err(Failed)));
    let commands = rig.eligible("settlement");
    assert!(!commands.iter().any(|c| matches!(c, Command::Read { .. })), "suspect: {commands:?}");
}

#[test]
fn becoming_eligible_reads_and_stands_at_once() {
    let (mut rig, commands) = Rig::with_session();
    rig.event(Event::Read(reading(&commands, "settlement"), election("settlement"), Ok(vacant(3, 10))));
    let read = reading(&rig.eligible("settlement"), "settlement");
    rig.event(Event::Read(read, election("settlement"), Ok(vacant(3, 10))));
    assert!(rig.pass(5).contains(&Command::ReadFence { election: election("settlement") }));
}

#[test]
fn a_store_that_does_not_say_the_fences_term_is_not_waited_for() {
    let (mut rig, commands) = Rig::with_session();
    rig.eligible("settlement");
    rig.event(Event::Read(reading(&commands, "settlement"), election("settlement"), Ok(vacant(3, 10))));
    rig.pass(10);
    let mut later = rig.clone();
    let limit = u64::try_from(FENCE_READ_LIMIT.as_millis()).expect("small");
    let mut commands = Vec::new();
    for _ in 0..4 {
        let batch = later.pass(limit / 4);
        let renewal = batch.iter().rev().find_map(|c| if let Command::Renew { op, .. } = c { Some(*op) } else { None });
        if let Some(op) = renewal {
            later.event(Event::Renewed(op, RENEWED));
        }
        commands.extend(batch);
    }
    let commands = later.report(Report::FenceTerm { election: election("settlement"), term: Ok(term(0)) });
    assert!(!commands.iter().any(|c| matches!(c, Command::Campaign { .. })), "late: {commands:?}");
    let commands = rig.report(Report::FenceTerm { election: election("settlement"), term: Err("away".into()) });
    assert!(!commands.iter().any(|c| matches!(c, Command::Campaign { .. })));
}

#[test]
fn a_campaign_on_a_lease_that_is_gone_loses_the_session() {
    let (mut rig, commands) = Rig::with_session();
    let (op, _) = rig.campaign("settlement", reading(&commands, "settlement"), 0);
    let commands = rig.event(Event::Campaigned(op, election("settlement"), Ok(Campaigned::LeaseGone)));
    assert!(commands.contains(&Command::Close { lease: LEASE }));
    granting(&commands);
}

#[test]
fn used_up_terms_are_said_and_nobody_stands() {
    let (mut rig, commands) = Rig::with_session();
    rig.eligible("settlement");
    rig.event(Event::Read(reading(&commands, "settlement"), election("settlement"), Ok(vacant(3, 10))));
    rig.pass(10);
    let commands = rig.report(Report::FenceTerm { election: election("settlement"), term: Ok(term(i64::MAX)) });
    assert!(noted(&commands, |n| matches!(n, Note::TermsUsedUp { .. })));
}

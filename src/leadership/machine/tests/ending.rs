//! How tenures end, and what follows.

use super::*;
use crate::leadership::machine::standing::stand_back_time;
use crate::leadership::machine::{FIRST_STAND_BACK, LONGEST_STAND_BACK};
use crate::leadership::reason::{ExitReason, TransitionReason};
use crate::leadership::record::ResignOutcome;

fn ends_abruptly(commands: &[Command], reason: EndReason) {
    assert_eq!(ending(commands), [("settlement".into(), EndMode::Abrupt, reason)], "{commands:?}");
}

#[test]
fn only_an_accepted_tenure_leads_and_late_reports_of_another_mean_nothing() {
    let (mut rig, commands) = Rig::with_session();
    let claim = rig.won("settlement", reading(&commands, "settlement"));
    assert!(rig.leads().is_empty());
    let stale = Claim { tenure_id: TenureId(Uuid::nil()), ..claim.clone() };
    for report in [
        Report::Accepted { claim: stale.clone() },
        Report::Fault { claim: stale.clone(), why: String::new() },
        Report::Fenced { claim: stale.clone(), found: None },
        Report::Ended { claim: stale },
    ] {
        assert!(rig.report(report).is_empty());
    }
    assert!(rig.report(Report::Accepted { claim: claim.clone() }).contains(&Command::Accept { claim: claim.clone() }));
    assert_eq!(rig.leads(), [claim]);
}

#[test]
fn own_failures_resign_by_revision_and_stand_back_for_a_growing_time() {
    let reports: [fn(Claim) -> Report; 2] = [
        |claim| Report::PromotionFailed { claim, why: String::new() },
        |claim| Report::Fault { claim, why: String::new() },
    ];
    for (report, reason) in reports.into_iter().zip([EndReason::PromotionFailed, EndReason::Fault]) {
        let (mut rig, claim) = Rig::leading();
        let commands = rig.report(report(claim.clone()));
        ends_abruptly(&commands, reason);
        assert!(!commands.iter().any(|c| matches!(c, Command::Resign { .. })), "not before its end");
        assert!(noted(&commands, |n| matches!(n, Note::StandsBack { time, .. } if *time >= FIRST_STAND_BACK)));
        let commands = rig.report(Report::Ended { claim });
        let (op, won) = resigning(&commands);
        assert_eq!(won, WIN);
        let commands = rig.event(Event::Resigned(op, election("settlement"), Ok(ResignOutcome::Resigned)));
        let read = reading(&commands, "settlement");
        rig.event(Event::Read(read, election("settlement"), Ok(vacant(4, 21))));
        assert!(!rig.pass(500).iter().any(|c| matches!(c, Command::ReadFence { .. })), "it stands back");
    }
    let times: Vec<_> = (1..12).map(stand_back_time).collect();
    assert!(times.windows(2).all(|pair| pair[0] <= pair[1]) && times[0] == FIRST_STAND_BACK);
    assert_eq!(times.last(), Some(&LONGEST_STAND_BACK));
}

#[test]
fn the_first_fencing_in_a_row_stands_again_at_once_and_the_second_stands_back() {
    let (mut rig, claim) = Rig::leading();
    let commands = rig.report(Report::Fenced { claim: claim.clone(), found: None });
    ends_abruptly(&commands, EndReason::Fenced);
    assert!(!noted(&commands, |n| matches!(n, Note::StandsBack { .. })));
    let (op, _) = resigning(&rig.report(Report::Ended { claim }));
    let commands = rig.event(Event::Resigned(op, election("settlement"), Ok(ResignOutcome::Resigned)));
    let claim = rig.won("settlement", reading(&commands, "settlement"));
    let commands = rig.report(Report::Fenced { claim, found: None });
    assert!(noted(&commands, |n| matches!(n, Note::StandsBack { .. })));
}

#[test]
fn a_tenure_does_not_begin_again_before_its_end_was_reported() {
    let (mut rig, claim) = Rig::leading();
    rig.report(Report::Fenced { claim: claim.clone(), found: None });
    let commands = rig.event(Event::Woken(election("settlement")));
    let read = reading(&commands, "settlement");
    let commands = rig.event(Event::Read(read, election("settlement"), Ok(vacant(4, 30))));
    assert!(!commands.iter().any(|c| matches!(c, Command::ReadFence { .. } | Command::Begin { .. })));
    assert!(!rig.pass(100).iter().any(|c| matches!(c, Command::ReadFence { .. })));
    let commands = rig.report(Report::Ended { claim });
    assert!(!commands.iter().any(|c| matches!(c, Command::Resign { .. })), "the key was seen gone: {commands:?}");
}

#[test]
fn a_leader_key_that_is_gone_or_of_another_win_ends_that_tenure_and_not_the_session() {
    let (rig, claim) = Rig::leading();
    let found = [
        (vacant(4, 30), EndReason::LeaderKeyGone),
        (led(&others_claim("settlement", 5), "other", OTHERS_LEASE, 31), EndReason::LeaderKeyTaken),
        (led(&claim, "me", LEASE, 32), EndReason::LeaderKeyTaken),
        // After a restore, when revisions repeat.
        (led(&others_claim("settlement", 1), "other", OTHERS_LEASE, 20), EndReason::LeaderKeyTaken),
        (led(&others_claim("settlement", 1), "me", LEASE, 20), EndReason::LeaderKeyTaken),
    ];
    for (state, reason) in found {
        let mut rig = rig.clone();
        let read = reading(&rig.event(Event::Woken(election("settlement"))), "settlement");
        let commands = rig.event(Event::Read(read, election("settlement"), Ok(state)));
        ends_abruptly(&commands, reason);
        assert_eq!(rig.state(), SessionState::Live);
    }
    let mut rig = rig;
    let read = reading(&rig.event(Event::Woken(election("settlement"))), "settlement");
    let commands = rig.event(Event::Read(read, election("settlement"), Ok(led(&claim, "me", LEASE, 20))));
    assert!(ending(&commands).is_empty(), "its own win: {commands:?}");
}

#[test]
fn of_two_elections_one_is_lost_and_the_other_goes_on() {
    let (mut rig, commands) = Rig::with_session_for(&["fees", "settlement"]);
    let settlement = rig.won("settlement", reading(&commands, "settlement"));
    let fees = rig.won("fees", reading(&commands, "fees"));
    for claim in [&settlement, &fees] {
        rig.report(Report::Accepted { claim: claim.clone() });
    }
    assert_eq!(rig.leads(), [fees.clone(), settlement.clone()]);
    let commands = rig.report(Report::Fault { claim: fees.clone(), why: String::new() });
    assert_eq!(ending(&commands), [("fees".into(), EndMode::Abrupt, EndReason::Fault)]);
    assert_eq!(rig.leads(), std::slice::from_ref(&settlement));
    let commands = rig.report(Report::Ended { claim: fees });
    assert!(!commands.iter().any(|c| matches!(c, Command::Revoke { .. })), "the lease is of both: {commands:?}");
    assert_eq!(rig.leads(), [settlement]);
    // The session is common to both: its loss ends what is left.
    let op = renewing(&rig.pass(1000));
    let commands = rig.event(Event::Renewed(op, Ok(RenewOutcome::Gone)));
    ends_abruptly(&commands, EndReason::LeaseGone);
}

#[test]
fn an_abrupt_end_that_is_not_reported_within_the_budget_ends_the_process() {
    let (mut rig, claim) = Rig::leading();
    rig.report(Report::Fault { claim: claim.clone(), why: String::new() });
    let mut in_time = rig.clone();
    assert!(!exits(&rig.pass(999)));
    let commands = rig.pass(1);
    assert!(commands.contains(&Command::Exit(ExitReason::TeardownOverrun)), "{commands:?}");
    in_time.after(999).report(Report::Ended { claim });
    assert!(!exits(&in_time.pass(1)));
}

#[test]
fn a_planned_end_has_the_drain_and_then_the_budget() {
    let (mut rig, _) = Rig::leading();
    let commands = rig.report(Report::Cordoned(true));
    let drain = EndMode::Planned { drain: Duration::from_secs(12) };
    assert_eq!(ending(&commands), [("settlement".into(), drain, EndReason::Cordoned)]);
    let renew_for = |rig: &mut Rig, seconds: u64| {
        let mut all = Vec::new();
        for _ in 0..seconds * 2 {
            let commands = rig.pass(500);
            let renewal =
                commands.iter().find_map(|c| if let Command::Renew { op, .. } = c { Some(*op) } else { None });
            if let Some(op) = renewal {
                rig.event(Event::Renewed(op, RENEWED));
            }
            all.extend(commands);
        }
        all
    };
    assert!(ending(&renew_for(&mut rig, 11)).is_empty());
    let commands = renew_for(&mut rig, 1);
    ends_abruptly(&commands, EndReason::Cordoned);
    assert!(!exits(&commands));
    assert!(exits(&renew_for(&mut rig, 1)));
}

#[test]
fn the_loss_of_the_session_waits_for_nothing_also_in_a_planned_end() {
    let (mut rig, claim) = Rig::leading();
    rig.report(Report::Drain);
    let op = renewing(&rig.pass(1000));
    let commands = rig.event(Event::Renewed(op, Ok(RenewOutcome::Gone)));
    ends_abruptly(&commands, EndReason::LeaseGone);
    assert!(!commands.iter().any(|c| matches!(c, Command::Grant { .. })), "a draining replica takes no new lease");
    assert!(rig.report(Report::Ended { claim }).contains(&Command::Finished));
}

#[test]
fn a_leader_that_may_not_lead_any_more_resigns_at_once() {
    let (mut rig, claim) = Rig::leading();
    let away = Report::Eligible { election: election("settlement"), eligible: Err("the store is read-only".into()) };
    ends_abruptly(&rig.report(away.clone()), EndReason::Ineligible);
    assert!(ending(&rig.report(away)).is_empty(), "said once");
    resigning(&rig.report(Report::Ended { claim }));
}

#[test]
fn draining_ends_as_planned_then_deletes_the_key_then_revokes_then_leaves() {
    let (mut rig, claim) = Rig::leading();
    let commands = rig.report(Report::Drain);
    let drain = EndMode::Planned { drain: Duration::from_secs(12) };
    assert_eq!(ending(&commands), [("settlement".into(), drain, EndReason::Drain)]);
    assert!(!commands.iter().any(|c| matches!(c, Command::Resign { .. } | Command::Revoke { .. })));
    assert!(rig.report(Report::Drain).is_empty(), "said twice is said once");
    let (op, _) = resigning(&rig.report(Report::Ended { claim }));
    let commands = rig.event(Event::Resigned(op, election("settlement"), Ok(ResignOutcome::Resigned)));
    let revoke = commands.iter().find_map(|c| if let Command::Revoke { op, .. } = c { Some(*op) } else { None });
    let commands = rig.event(Event::Revoked(revoke.expect("a revocation")));
    assert_eq!(commands, [Command::Finished]);
    assert_eq!(rig.machine.deadline(), None);
}

#[test]
fn draining_a_replica_that_leads_nothing_revokes_at_once_and_without_a_session_leaves_at_once() {
    let (mut rig, _) = Rig::with_session();
    let commands = rig.report(Report::Drain);
    assert!(commands.iter().any(|c| matches!(c, Command::Revoke { lease: LEASE, .. })), "{commands:?}");
    assert!(rig.pass(1000).contains(&Command::Finished), "an unanswered revocation holds nobody up");
    let mut rig = Rig::new(&["settlement"]);
    rig.event(Event::Wake);
    assert!(rig.report(Report::Drain).contains(&Command::Finished));
}

#[test]
fn a_win_that_comes_while_stepping_down_is_given_up() {
    let (mut rig, commands) = Rig::with_session();
    let (op, claim) = rig.campaign("settlement", reading(&commands, "settlement"), 0);
    rig.report(Report::Eligible { election: election("settlement"), eligible: Err("store away".into()) });
    let outcome = Campaigned::Won { revision: Revision(20), record: record_of(&claim, "me", LEASE) };
    let commands = rig.event(Event::Campaigned(op, election("settlement"), Ok(outcome)));
    assert_eq!(resigning(&commands).1.revision, Revision(20));
}

#[test]
fn a_resignation_without_an_answer_is_sent_again_until_it_is_settled() {
    let (mut rig, claim) = Rig::leading();
    rig.report(Report::Fault { claim: claim.clone(), why: String::new() });
    let (op, _) = resigning(&rig.report(Report::Ended { claim }));
    rig.event(Event::Resigned(op, election("settlement"), Err(Failed)));
    let (again, won) = resigning(&rig.pass(100));
    assert_eq!(won, WIN);
    let settled = Ok(ResignOutcome::NotMine { found: None });
    assert!(
        rig.event(Event::Resigned(op, election("settlement"), settled.clone())).is_empty(),
        "the first one's, late"
    );
    reading(&rig.event(Event::Resigned(again, election("settlement"), settled)), "settlement");
}

#[test]
fn a_tenure_that_ends_unasked_has_failed() {
    let (mut rig, claim) = Rig::leading();
    let commands = rig.report(Report::Ended { claim: claim.clone() });
    assert!(noted(&commands, |n| matches!(n, Note::Transition { reason: TransitionReason::Fault, .. })));
    assert!(commands.contains(&Command::Forget { claim }));
    resigning(&commands);
}

/// A leader whose term the store has accepted, asked to hand over, with its tenure ended.
fn handing_over(to: Option<&str>) -> (Rig, Claim, Vec<Command>) {
    let (mut rig, claim) = Rig::leading();
    let wish = Report::HandOver { election: claim.election.clone(), term: claim.term, to: to.map(replica) };
    let commands = rig.report(wish.clone());
    let [(_, EndMode::Planned { .. }, EndReason::Transfer)] = ending(&commands)[..] else { panic!("{commands:?}") };
    assert!(rig.report(wish).is_empty(), "asked again it is under way");
    let commands = rig.report(Report::Ended { claim: claim.clone() });
    (rig, claim, commands)
}

fn transferring(commands: &[Command]) -> (OpId, Claim, Option<ReplicaId>, Win) {
    let found = commands.iter().find_map(|command| match command {
        Command::Transfer { op, claim, to, won, .. } => Some((*op, claim.clone(), to.clone(), *won)),
        _ => None,
    });
    found.unwrap_or_else(|| panic!("no transfer in {commands:?}"))
}

#[test]
fn a_hand_over_ends_the_tenure_as_planned_and_then_puts_the_successor_in_one_step() {
    let (mut rig, claim, commands) = handing_over(Some("b"));
    assert!(!commands.iter().any(|c| matches!(c, Command::Resign { .. })), "the place is never free: {commands:?}");
    let (op, next, to, won) = transferring(&commands);
    assert!(next.term > claim.term && next.tenure_id != claim.tenure_id && to == Some(replica("b")));
    assert_eq!(won, WIN);
    let commands = rig.event(Event::Transferred(op, claim.election.clone(), Ok(HandedOver::To(replica("b")))));
    reading(&commands, "settlement");
    assert!(rig.leads().is_empty());
}

#[test]
fn a_hand_over_that_fails_or_is_unknown_gives_the_key_up_as_ever() {
    for outcome in [Ok(HandedOver::ToNobody), Err(Failed)] {
        let (mut rig, claim, commands) = handing_over(None);
        let (op, _, to, _) = transferring(&commands);
        assert_eq!(to, None);
        let commands = rig.event(Event::Transferred(op, claim.election.clone(), outcome));
        let (_, won) = resigning(&commands);
        assert_eq!(won, WIN, "only if it is still of the own win");
    }
}

#[test]
fn a_hand_over_of_another_term_or_to_oneself_means_nothing() {
    let (mut rig, claim) = Rig::leading();
    let wish =
        |term, to: Option<&str>| Report::HandOver { election: claim.election.clone(), term, to: to.map(replica) };
    let later = Term::next_after(claim.term, claim.term).expect("a term");
    assert!(rig.report(wish(later, None)).is_empty());
    assert!(rig.report(wish(claim.term, Some("me"))).is_empty());
    assert_eq!(rig.leads(), [claim]);
}

//! The session: granted, renewed, suspect, lost, never revived.

use super::*;
use crate::leadership::machine::{PAUSE, TTLS_WITHOUT_BEAT, Timer};
use crate::leadership::reason::{ExitReason, Suspicion};
use crate::leadership::record::RegisterOutcome;

#[test]
fn the_window_is_counted_from_the_moment_before_the_sending() {
    let mut rig = Rig::new(&["settlement"]);
    let op = granting(&rig.event(Event::Wake));
    let commands = rig.after(300).event(Event::Granted(op, Ok(Grant { lease: LEASE, ttl: TTL })));
    let open = Command::Open { lease: LEASE, deadline: ms(5000), fresh_until: ms(3000) };
    assert!(commands.contains(&open), "{commands:?}");
    let commands = rig.pass(700);
    let op = renewing(&commands);
    let commands = rig.after(400).event(Event::Renewed(op, RENEWED));
    let open = Command::Open { lease: LEASE, deadline: ms(6000), fresh_until: ms(4000) };
    assert!(commands.contains(&open), "{commands:?}");
    assert_eq!(rig.state(), SessionState::Live);
}

#[test]
fn a_failed_renewal_makes_suspect_and_is_sent_again_at_once() {
    let (mut rig, claim) = Rig::leading();
    let op = renewing(&rig.pass(1000));
    let commands = rig.event(Event::Renewed(op, Err(Failed)));
    assert!(commands.contains(&Command::Hold { lease: LEASE }));
    assert_eq!(rig.state(), SessionState::Suspect);
    assert_eq!(rig.leads(), [claim], "suspect still leads");
    let op = renewing(&rig.event(Event::Wake));
    let commands = rig.event(Event::Renewed(op, RENEWED));
    assert!(commands.iter().any(|c| matches!(c, Command::Open { .. })));
    assert_eq!(rig.state(), SessionState::Live);
}

#[test]
fn an_overdue_renewal_makes_suspect() {
    let (mut rig, _) = Rig::leading();
    let commands = rig.pass(2100);
    assert!(commands.contains(&Command::Hold { lease: LEASE }));
    assert_eq!(rig.state(), SessionState::Suspect);
}

#[test]
fn the_deadline_ends_the_session_and_no_later_answer_revives_it() {
    let (mut rig, claim) = Rig::leading();
    let op = renewing(&rig.pass(1000));
    let commands = rig.pass(3100);
    assert_eq!(ending(&commands), [("settlement".into(), EndMode::Abrupt, EndReason::SessionLost)]);
    assert!(commands.contains(&Command::Close { lease: LEASE }));
    assert!(rig.leads().is_empty());
    let commands = rig.event(Event::Renewed(op, RENEWED));
    assert!(commands.is_empty(), "{commands:?}");
    assert_eq!(rig.state(), SessionState::Lost);
    let commands = rig.report(Report::Ended { claim });
    assert!(!commands.iter().any(|c| matches!(c, Command::Resign { .. })), "the key goes with the lease: {commands:?}");
    assert!(commands.iter().any(|c| matches!(c, Command::Revoke { lease: LEASE, .. })), "given back: {commands:?}");
}

#[test]
fn an_answer_at_the_deadline_itself_comes_too_late() {
    let (mut rig, _) = Rig::leading();
    let op = renewing(&rig.pass(1000));
    rig.now = ms(5000);
    let commands = rig.event(Event::Renewed(op, RENEWED));
    assert_eq!(ending(&commands), [("settlement".into(), EndMode::Abrupt, EndReason::SessionLost)]);
}

#[test]
fn a_lease_that_the_coordinator_calls_gone_is_lost_at_once_and_another_is_asked_for() {
    let (mut rig, _) = Rig::leading();
    let op = renewing(&rig.pass(1000));
    let commands = rig.event(Event::Renewed(op, Ok(RenewOutcome::Gone)));
    assert_eq!(ending(&commands), [("settlement".into(), EndMode::Abrupt, EndReason::LeaseGone)]);
    granting(&commands);
}

#[test]
fn answers_to_earlier_renewals_and_doubled_ones_change_nothing() {
    let (mut rig, _) = Rig::leading();
    let first = renewing(&rig.pass(1000));
    rig.event(Event::Renewed(first, RENEWED));
    let before = rig.machine.clone();
    rig.event(Event::Renewed(first, RENEWED));
    rig.event(Event::Renewed(first, Ok(RenewOutcome::Gone)));
    assert_eq!(rig.machine, before);
}

#[test]
fn a_grant_that_is_answered_after_its_own_deadline_is_no_lease() {
    let mut rig = Rig::new(&["settlement"]);
    let op = granting(&rig.event(Event::Wake));
    rig.now = ms(5000);
    rig.report(Report::Beat);
    let commands = rig.event(Event::Granted(op, Ok(Grant { lease: LEASE, ttl: TTL })));
    assert!(!commands.iter().any(|c| matches!(c, Command::Open { .. })));
    assert_eq!(rig.state(), SessionState::None);
    granting(&rig.pass(1000));
}

#[test]
fn a_pause_makes_suspect_and_a_renewal_is_sent_before_anything_else() {
    let (mut rig, _) = Rig::leading();
    let (due, timer) = rig.machine.deadline().expect("timers");
    assert!(matches!(timer, Timer::Renew | Timer::Reread(_)), "{timer:?}");
    rig.now = due + PAUSE + Duration::from_millis(1);
    let commands = rig.event(Event::Wake);
    assert!(
        noted(&commands, |n| matches!(n, Note::Session { suspicion: Some(Suspicion::Paused), .. })),
        "{commands:?}"
    );
    renewing(&commands);
}

#[test]
fn clocks_that_run_apart_make_suspect() {
    let (mut rig, _) = Rig::leading();
    let monotonic = rig.now;
    let boot = rig.now + Duration::from_millis(200);
    let luck = Luck { jitter: 0, tenure: TenureId(Uuid::nil()) };
    let commands = rig.machine.handle(Now { boot, monotonic }, luck, Event::Reported(Report::Beat));
    assert!(
        noted(&commands, |n| matches!(n, Note::Session { suspicion: Some(Suspicion::ClocksDisagree), .. })),
        "{commands:?}"
    );
}

#[test]
fn workers_that_do_not_beat_for_three_ttls_end_the_process() {
    let mut rig = Rig::new(&["settlement"]);
    rig.event(Event::Wake);
    let limit = TTL * TTLS_WITHOUT_BEAT;
    let silent_since = rig.now;
    let mut commands = Vec::new();
    while rig.now < silent_since + limit {
        let (at, _) = rig.machine.deadline().expect("timers");
        rig.now = rig.now.max(at);
        commands = rig.event(Event::Wake);
        assert_eq!(exits(&commands), rig.now >= silent_since + limit);
    }
    assert!(commands.contains(&Command::Exit(ExitReason::WorkersStuck)));
}

#[test]
fn workers_are_not_blamed_for_the_time_in_which_the_process_was_stopped() {
    let (mut rig, _) = Rig::leading();
    rig.report(Report::Beat);
    rig.now = rig.now + TTL * TTLS_WITHOUT_BEAT + Duration::from_secs(1);
    let commands = rig.event(Event::Wake);
    assert!(!exits(&commands), "{commands:?}");
    assert_eq!(ending(&commands), [("settlement".into(), EndMode::Abrupt, EndReason::SessionLost)]);
}

fn registering(commands: &[Command]) -> Vec<(OpId, usize)> {
    let of = |command: &Command| match command {
        Command::Register { op, eligible, .. } => Some((*op, eligible.len())),
        _ => None,
    };
    commands.iter().filter_map(of).collect()
}

#[test]
fn a_replicas_record_that_is_not_there_as_it_should_be_is_put_again() {
    let (mut rig, commands) = Rig::with_session();
    let commands = [commands, rig.eligible("settlement"), rig.pass(1)].concat();
    let surveying = |commands: &[Command]| {
        let of = |command: &Command| if let Command::Survey { op } = command { Some(*op) } else { None };
        commands.iter().find_map(of).expect("a survey")
    };
    let mut survey = surveying(&commands);
    for (op, _) in registering(&commands) {
        rig.event(Event::Registered(op, Ok(RegisterOutcome::Registered)));
    }
    for (op, _) in registering(&rig.pass(1)) {
        rig.event(Event::Registered(op, Ok(RegisterOutcome::Registered)));
    }
    let shown = vec![election("settlement")];
    let found = [
        (Some((LEASE, shown.clone())), 0),
        (None, 1),
        (Some((OTHERS_LEASE, shown.clone())), 1),
        (Some((LEASE, Vec::new())), 1),
        (Some((LEASE, shown)), 0),
    ];
    for (own, put) in found {
        let seen = rig.event(Event::Surveyed(survey, Ok(Survey { replicas: 3, own: own.clone() })));
        let commands = [seen, rig.pass(1)].concat();
        assert_eq!(registering(&commands).len(), put, "{own:?}: {commands:?}");
        for (op, eligible) in registering(&commands) {
            assert_eq!(eligible, 1);
            rig.event(Event::Registered(op, Ok(RegisterOutcome::Registered)));
        }
        let mut commands = Vec::new();
        while !commands.iter().any(|command| matches!(command, Command::Survey { .. })) {
            commands = rig.pass(100);
            for command in commands.clone() {
                if let Command::Renew { op, .. } = command {
                    rig.event(Event::Renewed(op, RENEWED));
                }
            }
        }
        survey = surveying(&commands);
    }
}

#[test]
fn a_replicas_record_is_put_one_at_a_time_so_that_no_earlier_one_stands_in_the_end() {
    let mut rig = Rig::new(&["settlement"]);
    let op = granting(&rig.event(Event::Wake));
    let first = [rig.event(Event::Granted(op, Ok(Grant { lease: LEASE, ttl: TTL }))), rig.pass(1)].concat();
    let [(op, 0)] = registering(&first)[..] else { panic!("{first:?}") };
    let meanwhile = [rig.eligible("settlement"), rig.pass(1)].concat();
    assert!(registering(&meanwhile).is_empty(), "the first may arrive last: {meanwhile:?}");
    let then = [rig.event(Event::Registered(op, Ok(RegisterOutcome::Registered))), rig.pass(1)].concat();
    let [(_, 1)] = registering(&then)[..] else { panic!("{then:?}") };
}

//! Calls of outside handlers through the port: on the wire under one term, recorded once, in doubt for good.

use std::time::Duration;

use bursar::domain::job::{HandlerDefinition, ProbeDefinition, ProbeShape};
use bursar::domain::run::RunState;
use bursar::domain::unit::UnitState;
use bursar::store::{Call, CallFate, CallRecord, FinishOutcome, OpenRun, PlanSource, Scope};

use super::desk::{Desk, actor, definition, mine};

/// A run of an outside handler with these units, planned.
async fn outside(desk: &Desk, idempotent: bool, keys: &[&str]) -> OpenRun {
    outside_named(desk, "calls", idempotent, keys).await
}

async fn outside_named(desk: &Desk, job: &str, idempotent: bool, keys: &[&str]) -> OpenRun {
    let probe = ProbeDefinition { shape: ProbeShape::Outside, idempotent, ..ProbeDefinition::default() };
    let job = desk.job_of(definition(job, HandlerDefinition::Probe(probe))).await;
    let run = desk.run(&job, desk.now().await).await;
    let keys = PlanSource::Keys(keys.iter().map(|key| (*key).to_owned()).collect());
    desk.plan_from(&run, &keys, 100).await;
    run
}

async fn take(desk: &Desk, run: &OpenRun, limit: u32) -> Vec<Call> {
    mine(desk.tenure.take_calls(run, limit).await)
}

async fn record(desk: &Desk, run: &OpenRun, call: &Call, fate: CallFate) -> u64 {
    let record = CallRecord { instruction: call.instruction, attempt: call.attempt, fate };
    mine(desk.tenure.record_calls(run.id, &[record]).await)
}

/// Takes the one call that is due, once its wait is over.
async fn take_again(desk: &Desk, run: &OpenRun) -> Call {
    loop {
        let mut calls = take(desk, run, 10).await;
        match calls.len() {
            0 => tokio::task::yield_now().await,
            1 => return calls.remove(0),
            _ => panic!("one call is due: {calls:?}"),
        }
    }
}

fn unknown(again_in: Option<Duration>) -> CallFate {
    CallFate::Unknown { error: "no answer".to_owned(), again_in }
}

fn failed(again_in: Option<Duration>) -> CallFate {
    CallFate::Failed { error: "refused".to_owned(), again_in }
}

const SOON: Option<Duration> = Some(Duration::from_millis(1));

#[tokio::test]
async fn a_call_is_taken_once_recorded_once_and_settles_its_unit() {
    let desk = Desk::open().await;
    let run = outside(&desk, false, &["a", "b", "c"]).await;
    let first = take(&desk, &run, 2).await;
    assert_eq!(first.iter().map(|call| (call.key.as_str(), call.attempt)).collect::<Vec<_>>(), [("a", 1), ("b", 1)]);
    let (one, other) = tokio::join!(take(&desk, &run, 10), take(&desk, &run, 10));
    assert_eq!(one.len() + other.len(), 1, "what is on the wire is not taken again");
    let pending = mine(desk.tenure.finish_run(run.id).await);
    assert_eq!(pending, FinishOutcome::Pending { units: 3, fresh: 0, next_in: None });
    for call in first.iter().chain(&one).chain(&other) {
        assert_eq!(record(&desk, &run, call, CallFate::Done).await, 1);
        assert_eq!(record(&desk, &run, call, CallFate::Done).await, 0);
        assert_eq!(record(&desk, &run, call, failed(None)).await, 0, "what is final stays");
    }
    assert_eq!(mine(desk.tenure.finish_run(run.id).await), FinishOutcome::Finished(RunState::Complete));
    let unit = desk.unit(&run, "a").await;
    assert_eq!((unit.state, unit.instructions[0].state.as_str()), (UnitState::Settled, "paid"));
    let view = desk.store.run_by_id(run.id).await.expect("the store answers").expect("there is the run");
    assert_eq!(view.summary.units.settled, 3);
    desk.audit_is_clean().await;
}

#[tokio::test]
async fn what_was_not_sent_is_as_it_was_and_no_late_record_is_taken_for_the_next_try() {
    let desk = Desk::open().await;
    let run = outside(&desk, true, &["a"]).await;
    let call = take_again(&desk, &run).await;
    assert_eq!(record(&desk, &run, &call, CallFate::NotSent).await, 1);
    let unit = desk.unit(&run, "a").await;
    assert_eq!(
        (unit.attempts, unit.instructions[0].state.as_str(), unit.instructions[0].in_doubt),
        (0, "pending", false)
    );
    let again = take_again(&desk, &run).await;
    assert_eq!((&again.idempotency_key, again.charged), (&call.idempotency_key, 0));
    assert_eq!(record(&desk, &run, &call, CallFate::NotSent).await, 0, "an earlier try's record changes nothing");
    // In doubt: a try that was not sent, or failed, leaves the doubt where it was.
    assert_eq!(record(&desk, &run, &again, unknown(SOON)).await, 1);
    let third = take_again(&desk, &run).await;
    assert!(third.in_doubt && third.idempotency_key == call.idempotency_key && third.charged == 1);
    assert_eq!(record(&desk, &run, &third, CallFate::NotSent).await, 1);
    let unit = desk.unit(&run, "a").await;
    assert_eq!((unit.instructions[0].state.as_str(), unit.instructions[0].in_doubt), ("unknown", true));
    let fourth = take_again(&desk, &run).await;
    assert_eq!(record(&desk, &run, &fourth, failed(None)).await, 1);
    let unit = desk.unit(&run, "a").await;
    assert_eq!((unit.state, unit.attempts), (UnitState::SetAside, 2));
    assert_eq!(
        (unit.instructions[0].state.as_str(), unit.instructions[0].reason.as_deref()),
        ("held", Some("unknown"))
    );
    assert_eq!(mine(desk.tenure.finish_run(run.id).await), FinishOutcome::Finished(RunState::CompleteSetAside));
    desk.audit_is_clean().await;
}

#[tokio::test]
async fn calls_that_nobody_has_in_hand_are_put_back_as_they_were_and_those_in_hand_are_not() {
    let desk = Desk::open().await;
    let run = outside(&desk, true, &["a", "b", "c"]).await;
    let doubted = take(&desk, &run, 1).await.remove(0);
    assert_eq!(record(&desk, &run, &doubted, unknown(SOON)).await, 1);
    let in_hand = take(&desk, &run, 1).await.remove(0);
    let other = outside_named(&desk, "others", true, &["a"]).await;
    let others = take(&desk, &other, 1).await.remove(0);
    // As of a take that was not answered: the doubted one and the third.
    let mut lost = take(&desk, &run, 10).await;
    while lost.len() < 2 {
        lost.extend(take(&desk, &run, 10).await);
    }
    lost.sort_unstable_by_key(|call| call.unit);

    let kept = [(in_hand.instruction, in_hand.attempt)];
    assert_eq!(mine(desk.tenure.put_back(run.id, &kept).await), 2);
    assert_eq!(mine(desk.tenure.put_back(run.id, &kept).await), 0, "a second time there is nothing to do");
    for call in &lost {
        let unit = desk.unit(&run, &call.key).await;
        let (state, attempts) = if call.in_doubt { ("unknown", 1) } else { ("pending", 0) };
        assert_eq!(
            (unit.state, unit.attempts, unit.instructions[0].state.as_str()),
            (UnitState::Pending, attempts, state)
        );
        assert_eq!(unit.instructions[0].in_doubt, call.in_doubt, "a doubt stays, and none comes of it");
        assert_eq!(record(&desk, &run, call, CallFate::Done).await, 0, "it is on the wire no more");
    }
    let again = take(&desk, &run, 10).await;
    assert_eq!(again.len(), 2, "due at once");
    for (call, lost) in again.iter().zip(&lost) {
        assert_eq!((&call.idempotency_key, call.charged), (&lost.idempotency_key, lost.charged));
        assert!(call.attempt > lost.attempt, "no late record can be taken for it");
        assert_eq!(record(&desk, &run, call, CallFate::Done).await, 1);
    }
    assert_eq!(record(&desk, &run, &in_hand, CallFate::Done).await, 1, "what was in hand was left alone");
    assert_eq!(record(&desk, &other, &others, CallFate::Done).await, 1, "and so was another run");
    desk.audit_is_clean().await;
}

#[tokio::test]
async fn calls_are_put_back_while_halted_and_never_under_another_claim() {
    let mut desk = Desk::open().await;
    let run = outside(&desk, false, &["a", "b"]).await;
    assert_eq!(take(&desk, &run, 1).await.len(), 1);
    desk.store.halt(&Scope::One(desk.claim.election.clone()), "month end", &actor()).await.expect("an answer");
    assert_eq!(mine(desk.tenure.put_back(run.id, &[]).await), 1);
    desk.store.resume(&Scope::One(desk.claim.election.clone()), "done", &actor()).await.expect("an answer");
    let sent = take(&desk, &run, 1).await.remove(0);
    let old = std::sync::Arc::clone(&desk.tenure);
    desk.succeed().await;
    let late = old.put_back(run.id, &[]).await.expect("the store answers");
    assert!(matches!(late, bursar::store::Entered::Fenced(Some(_))), "{late:?}");
    assert_eq!(mine(desk.tenure.put_back(run.id, &[]).await), 0, "what a lower term left is not known to have stayed");
    assert_eq!(desk.unit(&run, &sent.key).await.instructions[0].state.as_str(), "sending");
    assert_eq!(mine(desk.tenure.recover().await).calls_unknown, 1);
    desk.audit_is_clean().await;
}

#[tokio::test]
async fn a_failure_is_charged_and_an_unknown_outcome_of_a_receiver_that_is_not_idempotent_is_for_a_person() {
    let desk = Desk::open().await;
    let run = outside(&desk, false, &["a", "b"]).await;
    let calls = take(&desk, &run, 10).await;
    assert_eq!(record(&desk, &run, &calls[0], failed(SOON)).await, 1);
    assert_eq!(record(&desk, &run, &calls[1], unknown(None)).await, 1);
    let again = take_again(&desk, &run).await;
    assert_eq!((again.key.as_str(), again.attempt, again.charged, again.in_doubt), ("a", 2, 1, false));
    assert_eq!(again.idempotency_key, calls[0].idempotency_key);
    assert_eq!(record(&desk, &run, &again, failed(None)).await, 1);
    let (a, b) = (desk.unit(&run, "a").await, desk.unit(&run, "b").await);
    assert_eq!((a.state, a.attempts, a.instructions[0].state.as_str()), (UnitState::SetAside, 2, "rejected"));
    assert_eq!((b.state, b.attempts, b.instructions[0].state.as_str()), (UnitState::SetAside, 1, "held"));
    assert!(b.instructions[0].in_doubt && !a.instructions[0].in_doubt);
    desk.audit_is_clean().await;
}

#[tokio::test]
async fn a_later_term_finds_what_was_on_the_wire_and_an_earlier_one_records_nothing() {
    let mut desk = Desk::open().await;
    let run = outside(&desk, true, &["a"]).await;
    let call = take_again(&desk, &run).await;
    let old = std::sync::Arc::clone(&desk.tenure);
    desk.succeed().await;
    let record = CallRecord { instruction: call.instruction, attempt: call.attempt, fate: CallFate::Done };
    let late = old.record_calls(run.id, std::slice::from_ref(&record)).await.expect("the store answers");
    assert!(matches!(late, bursar::store::Entered::Fenced(Some(_))), "{late:?}");
    assert_eq!(mine(desk.tenure.record_calls(run.id, &[record]).await), 0, "it is not this term's");
    let recovery = mine(desk.tenure.recover().await);
    assert_eq!(recovery.calls_unknown, 1);
    let again = take_again(&desk, &run).await;
    assert!(again.in_doubt && again.idempotency_key == call.idempotency_key && again.attempt == 2);
    desk.audit_is_clean().await;
}

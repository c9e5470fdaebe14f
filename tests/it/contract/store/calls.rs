//! Calls of outside handlers: on the wire under one term, recorded once, in doubt for good.

use std::time::Duration;

use bursar::domain::instruction::InstructionState;
use bursar::domain::run::RunState;
use bursar::domain::unit::UnitState;
use bursar::store::{Call, CallFate, CallWord, FinishOutcome, OpenRun, Recovery, ResolveOutcome, TenureStore};

use super::bench::{Bench, LATER, SOON, actor, call_record, calling, claim, election, fenced, mine};

async fn record(tenure: &dyn TenureStore, run: &OpenRun, call: &Call, fate: CallFate) -> u64 {
    mine(tenure.record_calls(run.id, &[call_record(call.instruction, call.attempt, fate)]).await)
}

/// Takes the one call that is due, once its wait is over.
async fn take_again(tenure: &dyn TenureStore, run: &OpenRun) -> Call {
    loop {
        let mut calls = mine(tenure.take_calls(run, 10).await);
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

pub async fn a_call_is_taken_once_recorded_once_and_settles_its_unit(bench: &Bench) {
    let leads = bench.lead(1).await;
    let tenure = leads.as_ref();
    let run = bench.planned(tenure, calling("calls", false), &["a", "b", "c"]).await;
    let first = mine(tenure.take_calls(&run, 2).await);
    assert_eq!(first.iter().map(|call| (call.key.as_str(), call.attempt)).collect::<Vec<_>>(), [("a", 1), ("b", 1)]);
    let (one, other) = tokio::join!(tenure.take_calls(&run, 10), tenure.take_calls(&run, 10));
    let (one, other) = (mine(one), mine(other));
    assert_eq!(one.len() + other.len(), 1, "what is on the wire is not taken again");
    let pending = mine(tenure.finish_run(run.id).await);
    assert_eq!(pending, FinishOutcome::Pending { units: 3, fresh: 0, next_in: None });
    let figures = bench.store.figures(&leads.claim().election).await.expect("an answer");
    assert_eq!(figures.payouts, [], "calls on the wire are no payouts");
    for call in first.iter().chain(&one).chain(&other) {
        assert_eq!(record(tenure, &run, call, CallFate::Done).await, 1);
        let before = bench.picture().await;
        assert_eq!(record(tenure, &run, call, CallFate::Done).await, 0);
        assert_eq!(record(tenure, &run, call, failed(None)).await, 0, "what is final stays");
        assert_eq!(bench.picture().await, before, "nothing changed");
    }
    assert_eq!(mine(tenure.finish_run(run.id).await), FinishOutcome::Finished(RunState::Complete));
    let unit = bench.unit(run.id, "a").await;
    assert_eq!((unit.state, unit.instructions[0].state.as_str()), (UnitState::Settled, "paid"));
    let view = bench.store.run_by_id(run.id).await.expect("an answer").expect("there is the run");
    assert_eq!(view.summary.units.settled, 3);
}

pub async fn a_try_is_recorded_only_where_it_is_the_one_on_the_wire(bench: &Bench) {
    let leads = bench.lead(1).await;
    let tenure = leads.as_ref();
    let run = bench.planned(tenure, calling("calls", true), &["a"]).await;
    let other = bench.planned(tenure, calling("other", true), &["a"]).await;
    let call = take_again(tenure, &run).await;
    let before = bench.picture().await;
    let wrong_try = Call { attempt: 2, ..call.clone() };
    assert_eq!(record(tenure, &run, &wrong_try, CallFate::Done).await, 0, "another try");
    assert_eq!(record(tenure, &other, &call, CallFate::Done).await, 0, "another run's");
    let nobody = Call { instruction: i64::MAX, ..call.clone() };
    assert_eq!(record(tenure, &run, &nobody, CallFate::Done).await, 0, "no instruction");
    assert_eq!(bench.picture().await, before, "nothing changed");
    // Those that are as expected count beside those that are not.
    let records = [call_record(call.instruction, 9, CallFate::Done), call_record(call.instruction, 1, failed(LATER))];
    assert_eq!(mine(tenure.record_calls(run.id, &records).await), 1);
    let unit = bench.unit(run.id, "a").await;
    assert_eq!((unit.state, unit.attempts, unit.last_error.as_deref()), (UnitState::Pending, 1, Some("refused")));
    assert!(mine(tenure.take_calls(&run, 10).await).is_empty(), "its wait is not over");
    let pending = mine(tenure.finish_run(run.id).await);
    let FinishOutcome::Pending { units: 1, fresh: 0, next_in: Some(wait) } = pending else { panic!("{pending:?}") };
    assert!(wait > Duration::from_mins(58) && wait <= Duration::from_hours(1), "{wait:?}");
}

pub async fn what_was_not_sent_is_as_it_was_and_no_late_record_is_taken_for_the_next_try(bench: &Bench) {
    let leads = bench.lead(1).await;
    let tenure = leads.as_ref();
    let run = bench.planned(tenure, calling("calls", true), &["a"]).await;
    let call = take_again(tenure, &run).await;
    assert_eq!(record(tenure, &run, &call, CallFate::NotSent).await, 1);
    let unit = bench.unit(run.id, "a").await;
    let instruction = &unit.instructions[0];
    assert_eq!((unit.attempts, instruction.state.as_str(), instruction.in_doubt), (0, "pending", false));
    let again = take_again(tenure, &run).await;
    assert_eq!((&again.idempotency_key, again.charged, again.attempt), (&call.idempotency_key, 0, 2));
    assert_eq!(record(tenure, &run, &call, CallFate::NotSent).await, 0, "an earlier try's record changes nothing");
    // In doubt: a try that was not sent, or failed, leaves the doubt where it was.
    assert_eq!(record(tenure, &run, &again, unknown(SOON)).await, 1);
    let third = take_again(tenure, &run).await;
    assert!(third.in_doubt && third.idempotency_key == call.idempotency_key && third.charged == 1);
    assert_eq!(record(tenure, &run, &third, CallFate::NotSent).await, 1);
    let unit = bench.unit(run.id, "a").await;
    assert_eq!((unit.instructions[0].state.as_str(), unit.instructions[0].in_doubt), ("unknown", true));
    let fourth = take_again(tenure, &run).await;
    assert_eq!(record(tenure, &run, &fourth, failed(SOON)).await, 1);
    let unit = bench.unit(run.id, "a").await;
    assert_eq!((unit.instructions[0].state.as_str(), unit.instructions[0].in_doubt), ("unknown", true));
    let fifth = take_again(tenure, &run).await;
    assert_eq!(record(tenure, &run, &fifth, failed(None)).await, 1);
    let unit = bench.unit(run.id, "a").await;
    assert_eq!((unit.state, unit.attempts), (UnitState::SetAside, 3));
    let instruction = &unit.instructions[0];
    assert_eq!((instruction.state.as_str(), instruction.reason.as_deref()), ("held", Some("unknown")));
    assert_eq!(mine(tenure.finish_run(run.id).await), FinishOutcome::Finished(RunState::CompleteSetAside));
}

pub async fn a_failure_is_charged_and_an_unknown_outcome_without_another_try_is_for_a_person(bench: &Bench) {
    let leads = bench.lead(1).await;
    let tenure = leads.as_ref();
    let run = bench.planned(tenure, calling("calls", false), &["a", "b"]).await;
    let calls = mine(tenure.take_calls(&run, 10).await);
    assert_eq!(record(tenure, &run, &calls[0], failed(SOON)).await, 1);
    assert_eq!(record(tenure, &run, &calls[1], unknown(None)).await, 1);
    let again = take_again(tenure, &run).await;
    assert_eq!((again.key.as_str(), again.attempt, again.charged, again.in_doubt), ("a", 2, 1, false));
    assert_eq!(again.idempotency_key, calls[0].idempotency_key);
    assert_eq!(record(tenure, &run, &again, failed(None)).await, 1);
    let (a, b) = (bench.unit(run.id, "a").await, bench.unit(run.id, "b").await);
    assert_eq!((a.state, a.attempts, a.instructions[0].state.as_str()), (UnitState::SetAside, 2, "rejected"));
    assert_eq!((b.state, b.attempts, b.instructions[0].state.as_str()), (UnitState::SetAside, 1, "held"));
    assert!(b.instructions[0].in_doubt && !a.instructions[0].in_doubt);
}

pub async fn a_later_term_finds_what_was_on_the_wire_and_an_earlier_one_records_nothing(bench: &Bench) {
    let old = bench.lead(1).await;
    let run = bench.planned(old.as_ref(), calling("calls", true), &["a"]).await;
    let call = take_again(old.as_ref(), &run).await;
    let next = claim(2);
    let new = bench.lead_of(&next).await;
    let done = call_record(call.instruction, call.attempt, CallFate::Done);
    fenced(old.record_calls(run.id, std::slice::from_ref(&done)).await, &next);
    assert_eq!(mine(new.record_calls(run.id, &[done]).await), 0, "it is not this term's");
    let found = mine(new.recover().await);
    assert_eq!(found, Recovery { calls_unknown: 1, ..Recovery::default() });
    let again = take_again(new.as_ref(), &run).await;
    assert!(again.in_doubt && again.idempotency_key == call.idempotency_key && again.attempt == 2);
    assert_eq!(record(new.as_ref(), &run, &again, CallFate::Done).await, 1);
}

pub async fn calls_that_nobody_has_in_hand_are_put_back_as_they_were_and_those_in_hand_are_not(bench: &Bench) {
    let leads = bench.lead(1).await;
    let tenure = leads.as_ref();
    let run = bench.planned(tenure, calling("calls", true), &["a"]).await;
    let other = bench.planned(tenure, calling("other", true), &["a"]).await;
    let doubted = take_again(tenure, &run).await;
    assert_eq!(record(tenure, &run, &doubted, unknown(SOON)).await, 1);
    let doubted = take_again(tenure, &run).await;
    let elsewhere = take_again(tenure, &other).await;
    let before = bench.picture().await;
    let kept = [(doubted.instruction, doubted.attempt)];
    assert_eq!(mine(tenure.put_back(run.id, &kept).await), 0, "it is in hand");
    assert_eq!(bench.picture().await, before, "nothing changed");
    assert_eq!(mine(tenure.put_back(run.id, &[(doubted.instruction, 1)]).await), 1, "an earlier try is in hand");
    assert_eq!(mine(tenure.put_back(run.id, &[]).await), 0, "a second time there is nothing to do");
    let unit = bench.unit(run.id, "a").await;
    let call = &unit.instructions[0];
    assert_eq!((unit.attempts, call.state.as_str(), call.in_doubt, call.attempts), (1, "unknown", true, 2));
    assert_eq!(record(tenure, &run, &doubted, CallFate::Done).await, 0, "it is not on the wire any more");
    let again = take_again(tenure, &run).await;
    assert_eq!((&again.idempotency_key, again.attempt, again.charged), (&doubted.idempotency_key, 3, 1));
    assert_eq!(record(tenure, &other, &elsewhere, CallFate::Done).await, 1, "another run's is left");
    let next = bench.lead(2).await;
    assert_eq!(mine(next.put_back(run.id, &[]).await), 0, "what a lower term left is not known to have stayed");
    assert_eq!(mine(next.recover().await).calls_unknown, 1);
}

pub async fn units_with_attempts_behind_them_come_after_fresh_ones(bench: &Bench) {
    let leads = bench.lead(1).await;
    let tenure = leads.as_ref();
    let run = bench.planned(tenure, calling("calls", true), &["a", "b", "c", "d"]).await;
    let first = mine(tenure.take_calls(&run, 2).await);
    for call in &first {
        assert_eq!(record(tenure, &run, call, failed(SOON)).await, 1);
    }
    tokio::time::sleep(Duration::from_millis(5)).await;
    let keys = |calls: &[Call]| calls.iter().map(|call| call.key.clone()).collect::<Vec<_>>();
    assert_eq!(keys(&mine(tenure.take_calls(&run, 1).await)), ["c"], "a and b are due, and were tried");
    assert_eq!(keys(&mine(tenure.take_calls(&run, 2).await)), ["a", "d"], "what is left of the limit is theirs");
    let last = mine(tenure.take_calls(&run, 2).await);
    assert_eq!(keys(&last), ["b"]);
    // So does one that its receiver stopped for, so that another is tried next; and then whoever has waited longest.
    let run = bench.planned(tenure, calling("stops", true), &["a", "b"]).await;
    for expected in ["a", "b", "a", "b"] {
        let call = mine(tenure.take_calls(&run, 1).await).remove(0);
        assert_eq!(call.key, expected);
        let stopped =
            CallFate::Stopped { error: "answered 400".to_owned(), again_in: Duration::from_millis(1), left: false };
        assert_eq!(record(tenure, &run, &call, stopped).await, 1);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

pub async fn a_calls_key_counts_from_the_first_try_that_left(bench: &Bench) {
    const A_WHILE: Duration = Duration::from_millis(60);
    let leads = bench.lead(1).await;
    let tenure = leads.as_ref();
    let run = bench.planned(tenure, calling("calls", true), &["a"]).await;
    let call = take_again(tenure, &run).await;
    assert!(call.age < A_WHILE);
    tokio::time::sleep(A_WHILE).await;
    record(tenure, &run, &call, CallFate::NotSent).await;
    let again = take_again(tenure, &run).await;
    assert!(again.age < A_WHILE, "no byte of it left: {:?}", again.age);
    tokio::time::sleep(A_WHILE).await;
    assert_eq!(mine(tenure.put_back(run.id, &[]).await), 1);
    let again = take_again(tenure, &run).await;
    assert!(again.age < A_WHILE, "nor of that one: {:?}", again.age);
    let stopped = |left| CallFate::Stopped { error: "stopped".to_owned(), again_in: Duration::from_millis(1), left };
    tokio::time::sleep(A_WHILE).await;
    record(tenure, &run, &again, stopped(false)).await;
    let again = take_again(tenure, &run).await;
    assert!(again.age < A_WHILE, "its receiver stopped before it left: {:?}", again.age);
    tokio::time::sleep(A_WHILE).await;
    record(tenure, &run, &again, stopped(true)).await;
    let again = take_again(tenure, &run).await;
    assert!(again.age >= A_WHILE, "its receiver has seen the key: {:?}", again.age);
    record(tenure, &run, &again, failed(SOON)).await;
    tokio::time::sleep(A_WHILE).await;
    let tried = take_again(tenure, &run).await;
    assert!(tried.age >= A_WHILE, "it left, and was proved undone: {:?}", tried.age);
    record(tenure, &run, &tried, CallFate::NotSent).await;
    let again = take_again(tenure, &run).await;
    assert!(again.age >= tried.age, "as it was before: {:?}", again.age);
    // A receiver that stops says nothing of the unit.
    let stopped = CallFate::Stopped { error: "answered 401".to_owned(), again_in: Duration::from_hours(1), left: true };
    record(tenure, &run, &again, stopped).await;
    assert!(mine(tenure.take_calls(&run, 10).await).is_empty(), "its wait is not over");
    let unit = bench.unit(run.id, "a").await;
    let instruction = &unit.instructions[0];
    assert_eq!((unit.attempts, instruction.state.as_str(), instruction.in_doubt), (1, "pending", false));
}

pub async fn what_is_put_off_is_no_attempt_and_its_key_goes_on_counting(bench: &Bench) {
    let leads = bench.lead(1).await;
    let tenure = leads.as_ref();
    let run = bench.planned(tenure, calling("calls", true), &["a"]).await;
    let wait = Duration::from_millis(20);
    let put_off = || CallFate::PutOff { error: "no connection".to_owned(), again_in: wait };
    for tries in 1..=5 {
        let call = take_again(tenure, &run).await;
        assert_eq!(
            (call.attempt, call.charged, call.in_doubt),
            (tries, 0, false),
            "more tries than attempts are allowed"
        );
        assert!(call.age >= wait * (tries - 1), "{:?}", call.age);
        assert_eq!(record(tenure, &run, &call, put_off()).await, 1);
        let unit = bench.unit(run.id, "a").await;
        assert_eq!((unit.state, unit.instructions[0].state.as_str()), (UnitState::Pending, "pending"));
    }
    // Not even a hand-over before a byte left lets the key count anew: the receiver has seen it.
    let call = take_again(tenure, &run).await;
    assert_eq!(record(tenure, &run, &call, CallFate::NotSent).await, 1);
    let again = take_again(tenure, &run).await;
    assert!(again.age >= call.age && call.age >= wait * 5, "{:?} after {:?}", again.age, call.age);
    assert_eq!(record(tenure, &run, &again, put_off()).await, 1);
    // It proves nothing about a try before it that is in doubt.
    let call = take_again(tenure, &run).await;
    assert_eq!(record(tenure, &run, &call, unknown(SOON)).await, 1);
    let call = take_again(tenure, &run).await;
    assert_eq!((call.charged, call.in_doubt), (1, true));
    assert_eq!(record(tenure, &run, &call, put_off()).await, 1);
    assert_eq!(bench.unit(run.id, "a").await.instructions[0].state.as_str(), "unknown");
    let call = take_again(tenure, &run).await;
    assert_eq!((call.charged, call.in_doubt), (1, true), "the doubt stays");
    assert_eq!(record(tenure, &run, &call, CallFate::Done).await, 1);
}

async fn resolve(bench: &Bench, run: i64, key: &str, word: &CallWord) -> ResolveOutcome {
    bench.store.resolve_call(run, key, word, "asked them", &actor()).await.expect("an answer")
}

async fn state(bench: &Bench, run: i64, key: &str) -> (UnitState, String) {
    let unit = bench.unit(run, key).await;
    (unit.state, unit.instructions[0].state.clone())
}

pub async fn a_persons_word_ends_what_no_program_can_settle(bench: &Bench) {
    let leads = bench.lead(1).await;
    let tenure = leads.as_ref();
    let run = bench.planned(tenure, calling("calls", false), &["a", "b", "c", "d"]).await;
    let done = CallWord::Done("R-7".to_owned());
    let not_done = CallWord::NotDone { confirmed: None };
    let before = bench.picture().await;
    assert!(matches!(resolve(bench, run.id, "a", &done).await, ResolveOutcome::Refused { .. }), "never called");
    assert_eq!(resolve(bench, run.id, "nobody", &done).await, ResolveOutcome::NotFound);
    assert_eq!(resolve(bench, run.id + 1000, "a", &done).await, ResolveOutcome::NotFound);
    assert_eq!(bench.picture().await, before, "nothing changed");
    let calls = mine(tenure.take_calls(&run, 10).await);
    assert!(matches!(resolve(bench, run.id, "a", &done).await, ResolveOutcome::Refused { .. }), "on the wire");
    for (call, fate) in calls.iter().zip([unknown(None), unknown(None), failed(None), CallFate::Done]) {
        assert_eq!(record(tenure, &run, call, fate).await, 1);
    }
    assert_eq!(mine(tenure.finish_run(run.id).await), FinishOutcome::Finished(RunState::CompleteSetAside));
    // Also while the election is halted.
    bench.store.halt(&election(), "month end", &actor()).await.expect("halted");
    let (held, paid, rejected) = (InstructionState::Held, InstructionState::Paid, InstructionState::Rejected);
    let is = |was, now| ResolveOutcome::Resolved { was, now };
    assert_eq!(resolve(bench, run.id, "a", &done).await, is(held, paid));
    assert_eq!(state(bench, run.id, "a").await, (UnitState::Settled, "paid".to_owned()));
    assert_eq!(resolve(bench, run.id, "b", &not_done).await, is(held, rejected));
    assert_eq!(state(bench, run.id, "b").await, (UnitState::Empty, "rejected".to_owned()));
    let act = bench.store.history(1).await.expect("an answer").acts.remove(0);
    assert_eq!((act.action.as_str(), act.term, act.reason.as_deref()), ("units resolve", Some(1), Some("asked them")));
    assert!(matches!(resolve(bench, run.id, "c", &done).await, ResolveOutcome::Refused { .. }), "it was refused");
    let of_run = async || bench.store.run_by_id(run.id).await.expect("an answer").expect("there is the run").summary;
    assert_eq!(of_run().await.state, RunState::CompleteSetAside, "one is set aside");
    assert_eq!(resolve(bench, run.id, "c", &not_done).await, is(rejected, rejected));
    let summary = of_run().await;
    assert_eq!((summary.state, summary.units.settled, summary.units.empty), (RunState::Complete, 2, 2));
    assert_eq!(summary.units.set_aside, 0);
    let before = bench.picture().await;
    for key in ["a", "b", "c", "d"] {
        for word in [&done, &not_done] {
            assert!(
                matches!(resolve(bench, run.id, key, word).await, ResolveOutcome::Refused { .. }),
                "{key} is final"
            );
        }
    }
    assert_eq!(bench.picture().await, before, "nothing changed");
    bench.store.resume(&election(), "over", &actor()).await.expect("resumed");
}

//! Requests of operators: executed once, refused with the reason.

use std::collections::BTreeSet;

use bursar::domain::JobName;
use bursar::domain::run::{RunKind, RunState};
use bursar::domain::unit::UnitState;
use bursar::store::{
    CallFate, Execution, JobChange, JobRow, RequestKind, RequestState, StoreError, TenureStore, TickRecord, UnitFilter,
    WithdrawOutcome,
};
use chrono::TimeDelta;
use uuid::Uuid;

use super::bench::{Bench, OPEN, actor, call_record, calling, change, charge, fresh, mark, mine, probe, tick};

fn trigger(job: &str) -> RequestKind {
    RequestKind::Trigger { job: JobName::new(job).expect("a name"), tick: None, cutoff: None }
}

async fn retry(bench: &Bench, tenure: &dyn TenureStore, run: i64, keys: &[&str]) -> RequestState {
    let request = bench.ask_retry(run, keys).await;
    let keys: BTreeSet<String> = keys.iter().map(|&key| key.to_owned()).collect();
    mine(tenure.execute(request, Execution::Retry { run, keys }).await)
}

pub async fn a_trigger_opens_one_manual_run_however_often_it_is_executed(bench: &Bench) {
    let leads = bench.lead(1).await;
    let row = bench.job(leads.as_ref(), probe("job")).await;
    let request = bench.store.request(&trigger("job"), &actor(), Some("now")).await.expect("filed");
    assert_eq!(bench.store.request_state(request).await, Ok(Some(RequestState::Waiting)));
    assert_eq!(bench.store.request_state(Uuid::from_u128(7 << 100)).await, Ok(None));
    assert_eq!(mine(leads.pulse().await).requests, 1);
    let second = bench.store.request(&trigger("job"), &actor(), None).await.expect("filed");
    let pending = mine(leads.requests().await);
    assert_eq!(pending.iter().map(|pending| pending.id).collect::<Vec<_>>(), [request, second]);
    assert_eq!(pending[0].kind, trigger("job"));
    let execution = Execution::Open { job: Box::new(row), tick: tick(bench.now().await, OPEN) };
    let made = mine(leads.execute(request, execution.clone()).await);
    let RequestState::Done { run, units: 0 } = made else { panic!("{made:?}") };
    let before = bench.picture().await;
    assert_eq!(mine(leads.execute(request, execution).await), made);
    assert_eq!(mine(leads.execute(request, Execution::Refuse("late".to_owned())).await), made);
    assert_eq!(bench.picture().await, before, "it was executed already");
    assert_eq!(bench.store.request_state(request).await, Ok(Some(made)));
    let runs = mine(leads.open_runs().await);
    assert_eq!((runs.len(), runs[0].id, runs[0].kind, runs[0].request_id), (1, run, RunKind::Manual, Some(request)));
    let refused = RequestState::Refused { why: "no".to_owned() };
    assert_eq!(mine(leads.execute(second, Execution::Refuse("no".to_owned())).await), refused);
    assert_eq!(bench.store.request_state(second).await, Ok(Some(refused)));
    assert!(mine(leads.requests().await).is_empty());
    let acts = bench.store.history(10).await.expect("an answer").acts;
    assert_eq!(
        (acts[1].action.as_str(), acts[1].target.as_str(), acts[1].reason.as_deref()),
        ("trigger", "job job", Some("now"))
    );
}

pub async fn a_request_that_waits_is_listed_and_is_executed_or_withdrawn_never_both(bench: &Bench) {
    let leads = bench.lead(1).await;
    let row = bench.job(leads.as_ref(), probe("job")).await;
    let ask = async |why: &str| bench.store.request(&trigger("job"), &actor(), Some(why)).await.expect("filed");
    let (first, second) = (ask("wrong").await, ask("right").await);
    let waiting = bench.store.waiting_requests().await.expect("an answer");
    let seen: Vec<_> = waiting.iter().map(|request| (request.id, request.reason.as_deref())).collect();
    assert_eq!(seen, [(first, Some("wrong")), (second, Some("right"))]);
    let shown = &waiting[0];
    assert_eq!((shown.action.as_str(), shown.target.as_str()), ("trigger", "job job"));
    assert_eq!(shown.by, format!("{}@{}", actor().user, actor().host));
    assert_eq!(serde_json::from_value::<RequestKind>(shown.asked.clone()).expect("as it was asked"), trigger("job"));

    let withdraw = async |id: Uuid| bench.store.withdraw_request(id, "twice", &actor()).await.expect("an answer");
    assert_eq!(withdraw(first).await, WithdrawOutcome::Withdrawn);
    let execution = Execution::Open { job: Box::new(row), tick: tick(bench.now().await, OPEN) };
    let refused = mine(leads.execute(first, execution.clone()).await);
    assert!(matches!(&refused, RequestState::Refused { why } if why.contains("withdrawn by") && why.contains("twice")));
    assert!(mine(leads.open_runs().await).is_empty(), "nothing was opened");
    assert_eq!(withdraw(first).await, WithdrawOutcome::Answered(refused));
    let made = mine(leads.execute(second, execution).await);
    let before = bench.picture().await;
    assert_eq!(withdraw(second).await, WithdrawOutcome::Answered(made));
    assert_eq!(withdraw(Uuid::from_u128(7 << 100)).await, WithdrawOutcome::NotFound);
    assert_eq!(bench.picture().await, before, "nothing changed");
    assert_eq!(bench.store.waiting_requests().await, Ok(Vec::new()));
    let acts = bench.store.history(10).await.expect("an answer").acts;
    let of = acts.iter().filter(|act| act.action == "requests withdraw").collect::<Vec<_>>();
    assert_eq!((of.len(), of[0].target.as_str()), (1, format!("request {first}").as_str()));
    assert_eq!(of[0].reason.as_deref(), Some("twice"));
}

pub async fn what_does_not_exist_cannot_be_asked_for(bench: &Bench) {
    let leads = bench.lead(1).await;
    let before = bench.picture().await;
    for kind in [trigger("nobody"), RequestKind::RetryUnits { run: 999, keys: BTreeSet::new() }] {
        let error = bench.store.request(&kind, &actor(), None).await.expect_err("it does not exist");
        assert!(matches!(&error, StoreError::Broken { detail, .. } if detail.contains("does not exist")), "{error}");
    }
    let unknown = leads.execute(Uuid::from_u128(7 << 100), Execution::Refuse("no".to_owned())).await;
    assert!(matches!(unknown, Err(StoreError::Broken { .. })), "{unknown:?}");
    assert_eq!(bench.picture().await, before, "nothing changed");
}

pub async fn a_manual_run_is_refused_where_its_job_is_another_or_its_cutoff_lies_ahead(bench: &Bench) {
    let leads = bench.lead(1).await;
    let row = bench.job(leads.as_ref(), probe("job")).await;
    let now = bench.now().await;
    let ahead = TickRecord { cutoff_at: now + TimeDelta::hours(1), ..tick(now, OPEN) };
    let mut other = row.clone();
    other.fingerprint = "0".repeat(64);
    for (job, tick) in [(row.clone(), ahead), (other, tick(now, OPEN))] {
        let request = bench.store.request(&trigger("job"), &actor(), None).await.expect("filed");
        let refused = mine(leads.execute(request, Execution::Open { job: Box::new(job), tick }).await);
        assert!(matches!(&refused, RequestState::Refused { why } if why.contains("ask again")), "{refused:?}");
    }
    let request = bench.store.request(&trigger("job"), &actor(), None).await.expect("filed");
    mine(leads.change_job(JobChange { definition: None, ..change(&row) }).await);
    let gone = Execution::Open { job: Box::new(row), tick: tick(now, OPEN) };
    assert!(matches!(mine(leads.execute(request, gone).await), RequestState::Refused { .. }));
    assert!(mine(leads.open_runs().await).is_empty());
}

pub async fn a_backfill_opens_a_run_for_each_of_its_ticks_or_none(bench: &Bench) {
    let leads = bench.lead(1).await;
    let row = bench.job(leads.as_ref(), probe("job")).await;
    let now = bench.now().await;
    let ticks: Vec<TickRecord> = (1..=3).rev().map(|hours| tick(now - TimeDelta::hours(hours), OPEN)).collect();
    let kind = RequestKind::Backfill {
        job: JobName::new("job").expect("a name"),
        from: now - TimeDelta::hours(3),
        to: now - TimeDelta::hours(1),
    };
    let ask = async || bench.store.request(&kind, &actor(), Some("paused")).await.expect("filed");
    let many =
        |job: &JobRow, ticks: &[TickRecord]| Execution::OpenMany { job: Box::new(job.clone()), ticks: ticks.to_vec() };
    let mut ahead = ticks.clone();
    ahead[0].cutoff_at = now + TimeDelta::hours(1);
    let mut other = row.clone();
    other.fingerprint = "0".repeat(64);
    for execution in [many(&row, &ahead), many(&other, &ticks)] {
        let refused = mine(leads.execute(ask().await, execution).await);
        assert!(matches!(&refused, RequestState::Refused { why } if why.contains("ask again")), "{refused:?}");
    }
    assert!(mine(leads.open_runs().await).is_empty(), "none of them");
    let request = ask().await;
    assert_eq!(mine(leads.requests().await)[0].kind, kind);
    let made = mine(leads.execute(request, many(&row, &ticks)).await);
    let RequestState::Opened { runs } = &made else { panic!("{made:?}") };
    let before = bench.picture().await;
    assert_eq!(mine(leads.execute(request, many(&row, &ticks)).await), made);
    assert_eq!(bench.picture().await, before, "it was executed already");
    assert_eq!(bench.store.request_state(request).await, Ok(Some(made.clone())));
    let open = mine(leads.open_runs().await);
    assert_eq!(open.iter().map(|run| run.id).collect::<Vec<_>>(), *runs, "in the order of their ticks");
    for (run, asked) in open.iter().zip(&ticks) {
        assert_eq!((run.kind, run.request_id), (RunKind::Manual, Some(request)));
        let micros = |time: chrono::DateTime<chrono::Utc>| time.timestamp_micros();
        assert_eq!((micros(run.tick), micros(run.cutoff_at)), (micros(asked.tick), micros(asked.cutoff_at)));
    }
    let acts = bench.store.history(10).await.expect("an answer").acts;
    assert_eq!((acts[0].action.as_str(), acts[0].target.as_str()), ("backfill", "job job"));
}

pub async fn a_retry_sets_back_what_is_set_aside_and_nothing_else(bench: &Bench) {
    let leads = bench.lead(1).await;
    let tenure = leads.as_ref();
    let run = bench.planned(tenure, probe("job"), &["a", "b", "c"]).await;
    let refused = |state: RequestState| assert!(matches!(state, RequestState::Refused { .. }), "{state:?}");
    refused(retry(bench, tenure, run.id, &["a"]).await);
    let ids: Vec<i64> = bench.units(run.id).await.into_iter().map(|unit| unit.id).collect();
    assert_eq!(mine(tenure.charge(run.id, &[charge(ids[0], 0, None), charge(ids[1], 0, None)]).await), 2);
    mine(tenure.settle(&run, fresh(10), &mark()).await);
    mine(tenure.finish_run(run.id).await);
    refused(retry(bench, tenure, run.id, &["c"]).await);
    assert_eq!(retry(bench, tenure, run.id, &["a", "c"]).await, RequestState::Done { run: run.id, units: 1 });
    let filter = UnitFilter { run: Some(run.id), state: Some(UnitState::SetAside), limit: 9, ..UnitFilter::default() };
    let aside = bench.store.units(&filter).await.expect("an answer");
    assert_eq!(aside.iter().map(|unit| unit.key.as_str()).collect::<Vec<_>>(), ["b"]);
    let unit = bench.unit(run.id, "a").await;
    assert_eq!((unit.state, unit.attempts, unit.ended_at, unit.term), (UnitState::Pending, 0, None, None));
    assert_eq!(bench.run_state(run.id).await.0, RunState::Open);
    assert_eq!(retry(bench, tenure, run.id, &[]).await, RequestState::Done { run: run.id, units: 1 });
    bench.settle(tenure, &run).await;
    assert_eq!(bench.run_state(run.id).await.0, RunState::Complete);
    refused(retry(bench, tenure, run.id, &[]).await);
}

pub async fn a_call_that_was_final_without_effect_is_retried_under_a_key_of_its_own(bench: &Bench) {
    let leads = bench.lead(1).await;
    let tenure = leads.as_ref();
    let run = bench.planned(tenure, calling("calls", false), &["a"]).await;
    let first = mine(tenure.take_calls(&run, 1).await).remove(0);
    let fate = CallFate::Failed { error: "no".to_owned(), again_in: None };
    assert_eq!(mine(tenure.record_calls(run.id, &[call_record(first.instruction, 1, fate)]).await), 1);
    assert_eq!(retry(bench, tenure, run.id, &[]).await, RequestState::Done { run: run.id, units: 1 });
    let second = mine(tenure.take_calls(&run, 1).await).remove(0);
    assert!(second.idempotency_key != first.idempotency_key && second.instruction != first.instruction);
    assert_eq!((second.attempt, second.charged, second.in_doubt), (1, 0, false));
    let states: Vec<String> = bench.unit(run.id, "a").await.instructions.into_iter().map(|call| call.state).collect();
    assert_eq!(states, ["rejected", "sending"]);
}

pub async fn a_held_call_of_a_receiver_that_is_idempotent_is_retried_under_its_key_and_in_doubt(bench: &Bench) {
    let leads = bench.lead(1).await;
    let tenure = leads.as_ref();
    let run = bench.planned(tenure, calling("calls", true), &["a"]).await;
    let first = mine(tenure.take_calls(&run, 1).await).remove(0);
    let fate = CallFate::Unknown { error: "no answer".to_owned(), again_in: None };
    assert_eq!(mine(tenure.record_calls(run.id, &[call_record(first.instruction, 1, fate)]).await), 1);
    assert_eq!(retry(bench, tenure, run.id, &[]).await, RequestState::Done { run: run.id, units: 1 });
    let call = bench.unit(run.id, "a").await.instructions.remove(0);
    assert_eq!((call.state.as_str(), call.reason, call.in_doubt), ("unknown", None, true));
    let second = mine(tenure.take_calls(&run, 1).await).remove(0);
    assert_eq!((&second.idempotency_key, second.attempt, second.in_doubt), (&first.idempotency_key, 2, true));
}

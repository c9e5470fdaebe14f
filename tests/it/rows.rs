//! What a leader keeps in the store beside settling: jobs, ticks, runs, requests, and what it finds of the terms before.

mod faults;

use std::collections::BTreeSet;
use std::time::Duration;

use bursar::domain::JobName;
use bursar::domain::run::{RunKind, RunState};
use bursar::store::{
    CallFate, CallRecord, Charge, Execution, JobChange, JobChangeOutcome, JobRow, OpenRun, PlanSource, Recovery,
    RequestKind, RequestState, SettleOutcome, Store, StoreError, TenureStore, TickFate, TicksOutcome, TicksRecord,
    UnitPick,
};
use chrono::TimeDelta;

use crate::fence::ground::{actor, claim, job, mark, migrated, mine, open, opened, planned, tenure, tick};

const OPEN: TickFate = TickFate::Open { caught_up: false };
const ALL: UnitPick = UnitPick::Fresh { after: 0, limit: 100 };

fn change(row: &JobRow) -> JobChange {
    JobChange {
        name: row.definition.name.clone(),
        definition: Some(row.definition.clone()),
        expected: Some(row.clone()),
        settled: Vec::new(),
        evaluated_until: row.evaluated_until,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ticks_are_recorded_once_and_bring_their_job_forward() {
    let database = migrated().await;
    let store = open(&database.url());
    let tenure = tenure(&store, &claim(1)).await;
    let job = job(tenure.as_ref(), "probe").await;
    let until = store.now().await.expect("an answer");
    let first = job.evaluated_until;
    let ticks = vec![
        tick(first, TickFate::Missed("older than the window".to_owned())),
        tick(first + TimeDelta::microseconds(1), TickFate::Skipped("overlap".to_owned())),
        tick(first + TimeDelta::microseconds(2), TickFate::Coalesced("rolled".to_owned())),
        tick(first + TimeDelta::microseconds(3), TickFate::Open { caught_up: true }),
    ];
    let record = TicksRecord { job: job.clone(), evaluated_until: until, ticks: ticks.clone() };
    let outcome = mine(tenure.record_ticks(record.clone()).await);
    let TicksOutcome::Recorded { opened, duplicates: 0 } = outcome else { panic!("{outcome:?}") };
    assert_eq!(opened.len(), 1);
    assert!(opened[0].1 < Duration::from_secs(30), "late by what passed since: {opened:?}");
    assert_eq!(mine(tenure.record_ticks(record).await), TicksOutcome::Moved, "the row moved on");
    let row = mine(tenure.jobs().await).jobs.remove(0);
    assert_eq!(row.evaluated_until, until);
    let until = store.now().await.expect("an answer");
    let again = TicksRecord { job: row, evaluated_until: until, ticks };
    assert_eq!(mine(tenure.record_ticks(again).await), TicksOutcome::Recorded { opened: Vec::new(), duplicates: 4 });
    let states: Vec<(String, Option<String>, bool, bool)> = database
        .rows("select state, why, finished_at is not null, deadline_at is not distinct from due_at + interval '45 min' from bursar.run order by tick")
        .await;
    assert_eq!(states.len(), 4);
    assert_eq!(states[0].1.as_deref(), Some("older than the window"));
    assert!(states[..3].iter().all(|state| state.2 && !state.3) && !states[3].2 && states[3].3, "{states:?}");
    let runs = mine(tenure.open_runs().await);
    assert_eq!((runs.len(), runs[0].state, runs[0].caught_up), (1, RunState::Planning, true));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_recorded_before_the_stores_clock_or_under_another_definition() {
    let database = migrated().await;
    let store = open(&database.url());
    let tenure = tenure(&store, &claim(1)).await;
    let job = job(tenure.as_ref(), "probe").await;
    let future = job.evaluated_until + TimeDelta::hours(1);
    let early = TicksRecord { job: job.clone(), evaluated_until: future, ticks: vec![tick(future, OPEN)] };
    assert!(matches!(mine(tenure.record_ticks(early).await), TicksOutcome::NotYet { now } if now < future));
    let mut other = job.clone();
    other.fingerprint = "0".repeat(64);
    let stale = TicksRecord { job: other, evaluated_until: job.evaluated_until, ticks: Vec::new() };
    assert_eq!(mine(tenure.record_ticks(stale).await), TicksOutcome::Moved);
    let back = job.evaluated_until - TimeDelta::seconds(1);
    let backwards = TicksRecord { job, evaluated_until: back, ticks: Vec::new() };
    assert_eq!(mine(tenure.record_ticks(backwards).await), TicksOutcome::Moved);
    assert_eq!(database.value::<i64>("select count(*) from bursar.run").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_job_settles_what_the_old_one_owed_and_a_removed_one_can_come_back() {
    let database = migrated().await;
    let store = open(&database.url());
    let tenure = tenure(&store, &claim(1)).await;
    let row = job(tenure.as_ref(), "probe").await;
    let now = store.now().await.expect("an answer");
    let mut edit = change(&row);
    let mut definition = row.definition.clone();
    definition.batch.size = 7;
    edit.definition = Some(definition.clone());
    edit.evaluated_until = now;
    edit.settled = vec![tick(row.evaluated_until, TickFate::Skipped("edit".to_owned())), tick(now, OPEN)];
    let JobChangeOutcome::Changed(Some(changed)) = mine(tenure.change_job(edit.clone()).await) else { panic!() };
    assert_eq!((&changed.definition, changed.evaluated_until), (&definition, now));
    assert_eq!(changed.fingerprint, definition.fingerprint());
    assert_eq!(mine(tenure.change_job(edit).await), JobChangeOutcome::Moved);
    let runs: Vec<(String, String)> = database.rows("select state, fingerprint from bursar.run order by tick").await;
    let old = row.fingerprint.clone();
    assert_eq!(runs, [("skipped".to_owned(), old.clone()), ("planning".to_owned(), old)], "under the old definition");
    let removal = JobChange { definition: None, ..change(&changed) };
    assert_eq!(mine(tenure.change_job(removal.clone()).await), JobChangeOutcome::Changed(None));
    assert_eq!(mine(tenure.change_job(removal).await), JobChangeOutcome::Moved);
    assert!(mine(tenure.jobs().await).jobs.is_empty());
    let back = JobChange { expected: None, ..change(&changed) };
    let JobChangeOutcome::Changed(Some(back)) = mine(tenure.change_job(back).await) else { panic!() };
    assert_eq!(back.id, changed.id);
    assert!(back.evaluated_until > now, "it starts at the store's now");
    let twice = JobChange { expected: None, ..change(&back) };
    assert_eq!(mine(tenure.change_job(twice).await), JobChangeOutcome::Moved);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_of_another_election_stays_there() {
    let database = migrated().await;
    let store = open(&database.url());
    let tenure = tenure(&store, &claim(1)).await;
    let row = job(tenure.as_ref(), "probe").await;
    database.execute("update bursar.job set election = 'other'").await;
    let other = JobChangeOutcome::OtherElection("other".to_owned());
    assert_eq!(mine(tenure.change_job(change(&row)).await), other);
    assert_eq!(mine(tenure.change_job(JobChange { expected: None, ..change(&row) }).await), other);
    assert!(mine(tenure.jobs().await).jobs.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_counts_while_the_stores_clock_is_behind_what_was_evaluated() {
    let database = migrated().await;
    let store = open(&database.url());
    let tenure = tenure(&store, &claim(1)).await;
    job(tenure.as_ref(), "probe").await;
    database.execute("update bursar.job set evaluated_until = evaluated_until + interval '1 hour'").await;
    let row = mine(tenure.jobs().await).jobs.remove(0);
    let mut edit = change(&row);
    edit.definition.as_mut().expect("a definition").batch.size = 7;
    let JobChangeOutcome::Changed(Some(changed)) = mine(tenure.change_job(edit).await) else { panic!("it is lost") };
    assert_eq!((changed.definition.batch.size, changed.evaluated_until), (7, row.evaluated_until));
    let mut ahead = change(&changed);
    ahead.evaluated_until += TimeDelta::minutes(1);
    assert_eq!(mine(tenure.change_job(ahead).await), JobChangeOutcome::Moved, "no further into the future");
}

/// A new leader on a term, and what it found.
async fn succeeded(store: &bursar::store::postgres::PgStore, term: i64) -> (std::sync::Arc<dyn TenureStore>, Recovery) {
    let tenure = tenure(store, &claim(term)).await;
    let found = mine(tenure.recover().await);
    assert_eq!(mine(tenure.recover().await), Recovery::default(), "recovering twice changes nothing");
    (tenure, found)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_leaders_die_three_times_without_progress_is_set_aside_and_others_go_on() {
    let database = migrated().await;
    let store = open(&database.url());
    let mut tenure = tenure(&store, &claim(1)).await;
    let deadly = planned(tenure.as_ref(), "deadly", &["a", "b"]).await;
    let other = planned(tenure.as_ref(), "other", &["a", "b", "c"]).await;
    for death in 1..=3 {
        for run in [&deadly, &other] {
            mine(tenure.begin_work(run.id).await);
            mine(tenure.begin_work(run.id).await);
        }
        let one = UnitPick::Fresh { after: 0, limit: 1 };
        assert!(matches!(mine(tenure.settle(&other, one, &mark()).await), SettleOutcome::Settled(_)));
        let found;
        (tenure, found) = succeeded(&store, death + 1).await;
        assert_eq!(found.runs_taken_over, 2);
        assert_eq!(found.runs_set_aside, if death == 3 { vec![deadly.id] } else { Vec::new() }, "death {death}");
    }
    let runs: Vec<(String, i32)> = database.rows("select state, deaths from bursar.run order by id").await;
    assert_eq!(runs, [("complete_set_aside".to_owned(), 3), ("open".to_owned(), 0)]);
    let units: Vec<(i64,)> = database
        .rows("select count(*) from bursar.unit where state = 'set_aside' and last_error like '3 leaders died%'")
        .await;
    assert_eq!(units, [(2,)]);
    // An operator's retry opens it again, and forgets the deaths.
    let request = retry(&store, deadly.id, &[]).await;
    let keys = BTreeSet::new();
    let done = mine(tenure.execute(request, Execution::Retry { run: deadly.id, keys }).await);
    assert_eq!(done, RequestState::Done { run: deadly.id, units: 2 });
    let open: Vec<i64> = mine(tenure.open_runs().await).iter().map(|run| run.id).collect();
    assert_eq!(open, [deadly.id, other.id]);
    assert!(matches!(mine(tenure.settle(&deadly, ALL, &mark()).await), SettleOutcome::Settled(_)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_planned_end_is_no_death() {
    let database = migrated().await;
    let store = open(&database.url());
    let mut tenure = tenure(&store, &claim(1)).await;
    let run = planned(tenure.as_ref(), "probe", &["a"]).await;
    for term in 2..=6 {
        mine(tenure.begin_work(run.id).await);
        mine(tenure.release().await);
        let found;
        (tenure, found) = succeeded(&store, term).await;
        assert_eq!(found, Recovery::default());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_set_aside_while_it_was_planned_is_planned_again_by_a_retry() {
    let database = migrated().await;
    let store = open(&database.url());
    let mut tenure = tenure(&store, &claim(1)).await;
    let run = opened(tenure.as_ref(), "probe").await;
    let keys = PlanSource::Keys(vec!["a".to_owned(), "b".to_owned(), "c".to_owned()]);
    mine(tenure.plan_page(&run, &keys, None, 1).await);
    for term in 2..=4 {
        mine(tenure.begin_work(run.id).await);
        (tenure, _) = succeeded(&store, term).await;
    }
    let state = "select state from bursar.run";
    assert_eq!(database.value::<String>(state).await, "complete_set_aside");
    let request = retry(&store, run.id, &[]).await;
    let execution = Execution::Retry { run: run.id, keys: BTreeSet::new() };
    assert_eq!(mine(tenure.execute(request, execution).await), RequestState::Done { run: run.id, units: 1 });
    assert_eq!(database.value::<String>(state).await, "planning");
    mine(tenure.plan_page(&run, &keys, Some("a"), 10).await);
    assert_eq!(database.value::<i64>("select count(*) from bursar.unit where state = 'pending'").await, 3);
}

fn outside(run: &OpenRun, idempotent: bool) -> OpenRun {
    let mut run = run.clone();
    let bursar::domain::job::HandlerDefinition::Probe(probe) = &mut run.definition.handler else { panic!("a probe") };
    probe.idempotent = idempotent;
    probe.shape = bursar::domain::job::ProbeShape::Outside;
    run
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_lower_term_left_on_the_wire_is_unknown_or_held_and_in_doubt_for_good() {
    let database = migrated().await;
    let store = open(&database.url());
    let tenure = tenure(&store, &claim(1)).await;
    let asked_again = outside(&planned(tenure.as_ref(), "idempotent", &["a"]).await, true);
    let once = outside(&planned(tenure.as_ref(), "once", &["a", "b"]).await, false);
    assert_eq!(mine(tenure.take_calls(&asked_again, 10).await).len(), 1);
    let calls = mine(tenure.take_calls(&once, 10).await);
    assert_eq!(calls.len(), 2);
    let done = CallRecord { instruction: calls[1].instruction, attempt: 1, fate: CallFate::Done };
    assert_eq!(mine(tenure.record_calls(once.id, std::slice::from_ref(&done)).await), 1);
    let (tenure, found) = succeeded(&store, 2).await;
    assert_eq!(found.calls_unknown, 2);
    let instructions: Vec<(String, Option<String>, bool)> =
        database.rows("select state, reason, in_doubt from bursar.instruction order by id").await;
    let text = |text: &str| text.to_owned();
    assert_eq!(
        instructions,
        [(text("unknown"), None, true), (text("held"), Some(text("unknown")), true), (text("paid"), None, false)]
    );
    let units: Vec<(String,)> = database.rows("select state from bursar.unit order by id").await;
    assert_eq!(units, [(text("pending"),), (text("set_aside"),), (text("settled"),)]);
    let again = mine(tenure.take_calls(&asked_again, 10).await);
    assert!(again.len() == 1 && again[0].in_doubt && again[0].attempt == 2, "{again:?}");
    // Nobody knows what came of it: a retry does not send it again.
    let request = retry(&store, once.id, &[]).await;
    let refused = mine(tenure.execute(request, Execution::Retry { run: once.id, keys: BTreeSet::new() }).await);
    let RequestState::Refused { why } = refused else { panic!("{refused:?}") };
    assert!(why.contains("1 have an instruction whose outcome is unknown"), "{why}");
}

async fn retry(store: &bursar::store::postgres::PgStore, run: i64, keys: &[&str]) -> uuid::Uuid {
    let kind = RequestKind::RetryUnits { run, keys: keys.iter().map(|&key| key.to_owned()).collect() };
    store.request(&kind, &actor(), Some("looked into")).await.expect("filed")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trigger_opens_one_manual_run_however_often_it_is_executed() {
    let database = migrated().await;
    let store = open(&database.url());
    let tenure = tenure(&store, &claim(1)).await;
    let row = job(tenure.as_ref(), "probe").await;
    let kind = RequestKind::Trigger { job: row.definition.name.clone(), tick: None, cutoff: None };
    let request = store.request(&kind, &actor(), None).await.expect("filed");
    assert_eq!(store.request_state(request).await, Ok(Some(RequestState::Waiting)));
    assert_eq!(mine(tenure.pulse().await).requests, 1);
    let pending = mine(tenure.requests().await);
    assert_eq!((pending.len(), pending[0].id, &pending[0].kind), (1, request, &kind));
    let now = store.now().await.expect("an answer");
    let execution = Execution::Open { job: Box::new(row), tick: tick(now, OPEN) };
    let made = mine(tenure.execute(request, execution.clone()).await);
    let RequestState::Done { run, units: 0 } = made else { panic!("{made:?}") };
    assert_eq!(mine(tenure.execute(request, execution).await), made);
    assert_eq!(mine(tenure.execute(request, Execution::Refuse("late".to_owned())).await), made);
    assert_eq!(store.request_state(request).await, Ok(Some(made)));
    let runs = mine(tenure.open_runs().await);
    assert_eq!((runs.len(), runs[0].id, runs[0].kind, runs[0].request_id), (1, run, RunKind::Manual, Some(request)));
    assert!(mine(tenure.requests().await).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_cannot_be_met_are_refused_with_the_reason() {
    let database = migrated().await;
    let store = open(&database.url());
    let tenure = tenure(&store, &claim(1)).await;
    let row = job(tenure.as_ref(), "probe").await;
    let nobody = RequestKind::Trigger { job: JobName::new("nobody").expect("a name"), tick: None, cutoff: None };
    let error = store.request(&nobody, &actor(), None).await.expect_err("no such job");
    assert!(
        matches!(&error, StoreError::Broken { detail, .. } if detail.contains("job nobody does not exist")),
        "{error}"
    );
    let kind = RequestKind::Trigger { job: row.definition.name.clone(), tick: None, cutoff: None };
    let request = store.request(&kind, &actor(), None).await.expect("filed");
    let mut future = tick(row.evaluated_until, OPEN);
    future.cutoff_at += TimeDelta::hours(1);
    let refused = mine(tenure.execute(request, Execution::Open { job: Box::new(row), tick: future }).await);
    assert!(matches!(&refused, RequestState::Refused { why } if why.contains("future")), "{refused:?}");
    let run = planned(tenure.as_ref(), "other", &["a", "b"]).await;
    let request = retry(&store, run.id, &["a"]).await;
    let keys: BTreeSet<String> = ["a".to_owned()].into();
    let refused = mine(tenure.execute(request, Execution::Retry { run: run.id, keys: keys.clone() }).await);
    assert!(matches!(refused, RequestState::Refused { .. }), "{refused:?}");
    // Set aside, one of two is retried.
    let units: Vec<(i64,)> = database.rows("select id from bursar.unit order by id").await;
    let charges: Vec<Charge> =
        units.iter().map(|unit| Charge { unit: unit.0, attempts: 0, error: "no".to_owned(), again_in: None }).collect();
    assert_eq!(mine(tenure.charge(run.id, &charges).await), 2);
    let request = retry(&store, run.id, &["a"]).await;
    let done = mine(tenure.execute(request, Execution::Retry { run: run.id, keys }).await);
    assert_eq!(done, RequestState::Done { run: run.id, units: 1 });
    let states: Vec<(String, i32)> = database.rows("select state, attempts from bursar.unit order by id").await;
    assert_eq!(states, [("pending".to_owned(), 0), ("set_aside".to_owned(), 1)]);
}

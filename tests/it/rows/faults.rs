//! What is no fault of a run, a unit or a job: locks of foreign keys, leaders that did not die, a store that is in trouble,
//! rows that another release wrote.

use std::collections::BTreeSet;
use std::time::Duration;

use bursar::domain::Claim;
use bursar::domain::run::RunState;
use bursar::store::postgres::PgStore;
use bursar::store::{
    AdvanceOutcome, Charge, Execution, FinishOutcome, RequestKind, RequestState, SettleOutcome, Store, StoreError,
    TenureLimits, TicksOutcome, TicksRecord, UnitPick,
};

use super::{ALL, OPEN, retry};
use crate::fence::ground::{
    BOUND, actor, claim, job, leader, limits, lineage, mark, migrated, mine, open, planned, tenure, tick,
};
use crate::support::always;

/// Below the time-out for locks of these tests: what waits for a lock does not end within it.
const AT_ONCE: Duration = Duration::from_secs(5);

#[tokio::test(flavor = "multi_thread")]
async fn neither_ticks_nor_the_end_of_a_run_wait_for_batches_that_refer_to_the_job_and_the_run() {
    let database = migrated().await;
    let store = open(&database.url());
    let tenure = tenure(&store, &claim(1)).await;
    let run = planned(tenure.as_ref(), "probe", &["a"]).await;
    assert!(matches!(mine(tenure.settle(&run, ALL, &mark()).await), SettleOutcome::Settled(_)));
    // What the checks of foreign keys take, and lanes hold all the time.
    let mut lane = database.connect().await;
    let held = "begin; select id from bursar.job for key share; select id from bursar.run for key share";
    sqlx::raw_sql(held).execute(&mut lane).await.expect("free");
    let row = mine(tenure.jobs().await).jobs.remove(0);
    let now = store.now().await.expect("an answer");
    let record = TicksRecord { job: row, evaluated_until: now, ticks: vec![tick(now, OPEN)] };
    let recorded = tokio::time::timeout(AT_ONCE, tenure.record_ticks(record)).await.expect("it does not wait");
    assert!(matches!(mine(recorded), TicksOutcome::Recorded { duplicates: 0, .. }));
    let finished = tokio::time::timeout(AT_ONCE, tenure.finish_run(run.id)).await.expect("it does not wait");
    assert_eq!(mine(finished), FinishOutcome::Finished(RunState::Complete));
}

/// The next leader, told how the one before ended.
async fn after(
    store: &PgStore,
    old: &Claim,
    reason: Option<&str>,
) -> (Claim, std::sync::Arc<dyn bursar::store::TenureStore>) {
    if let Some(reason) = reason {
        store.note_end(old, reason, None).await.expect("noted");
    }
    let next = claim(old.term.get() + 1);
    let tenure = tenure(store, &next).await;
    mine(tenure.recover().await);
    (next, tenure)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_lived_on_did_not_die_over_its_runs() {
    let database = migrated().await;
    let store = open(&database.url());
    let mut now = claim(1);
    let mut leads = tenure(&store, &now).await;
    let run = planned(leads.as_ref(), "probe", &["a"]).await;
    for reason in ["session_lost", "lease_gone", "leader_key_gone", "leader_key_taken", "ineligible", "fenced"] {
        mine(leads.begin_work(run.id).await);
        (now, leads) = after(&store, &now, Some(reason)).await;
        assert_eq!(database.value::<i32>("select deaths from bursar.run").await, 0, "{reason}");
    }
    // A fault, and an end that nobody told of, are deaths.
    for (deaths, reason) in [(1, Some("fault")), (2, None)] {
        mine(leads.begin_work(run.id).await);
        (now, leads) = after(&store, &now, reason).await;
        assert_eq!(database.value::<i32>("select deaths from bursar.run").await, deaths, "{reason:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_is_seen_whatever_the_stores_clock_did_meanwhile() {
    let database = migrated().await;
    let store = open(&database.url());
    let mut now = claim(1);
    let mut leads = tenure(&store, &now).await;
    let run = planned(leads.as_ref(), "probe", &["a", "b", "c"]).await;
    for _ in 0..3 {
        mine(leads.begin_work(run.id).await);
        let one = UnitPick::Fresh { after: 0, limit: 1 };
        assert!(matches!(mine(leads.settle(&run, one, &mark()).await), SettleOutcome::Settled(_)));
        database.execute("update bursar.batch set committed_at = committed_at - interval '1 hour'").await;
        (now, leads) = after(&store, &now, None).await;
    }
    assert_eq!(database.value::<i32>("select deaths from bursar.run").await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_of_units_leaves_the_note_of_who_works_on_the_run() {
    let database = migrated().await;
    let store = open(&database.url());
    let now = claim(1);
    let leads = tenure(&store, &now).await;
    let run = planned(leads.as_ref(), "probe", &["a", "b"]).await;
    mine(leads.begin_work(run.id).await);
    let unit = database.value::<i64>("select min(id) from bursar.unit").await;
    let charge = Charge { unit, attempts: 0, error: "no".to_owned(), again_in: None };
    assert_eq!(mine(leads.charge(run.id, &[charge]).await), 1);
    let request = retry(&store, run.id, &[]).await;
    let execution = Execution::Retry { run: run.id, keys: BTreeSet::new() };
    assert_eq!(mine(leads.execute(request, execution).await), RequestState::Done { run: run.id, units: 1 });
    assert_eq!(database.value::<i64>("select coalesce(worked_term, 0) from bursar.run").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_at_the_gate_is_never_a_verdict_on_a_batch() {
    let database = migrated().await;
    let store = open(&database.url());
    let mine_now = claim(1);
    let outcome = store.advance(&mine_now, &leader(), BOUND).await.expect("an answer");
    assert_eq!(outcome, AdvanceOutcome::Accepted { halt: None });
    let short = TenureLimits { statement_timeout: Duration::from_millis(500), ..limits() };
    let leads = store.tenure(&mine_now, short, lineage(&store).await, always()).await.expect("a tenure");
    let run = planned(leads.as_ref(), "probe", &["a"]).await;
    let mut operator = database.connect().await;
    sqlx::raw_sql("begin; select pg_advisory_xact_lock(bursar.gate('settlement'))")
        .execute(&mut operator)
        .await
        .expect("the lock is free");
    let error = leads.settle(&run, ALL, &mark()).await.expect_err("it waits in vain");
    assert!(matches!(&error, StoreError::TryAgain { code, .. } if code == "55P03"), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_is_the_stores_trouble_and_passes() {
    let database = migrated().await;
    let store = open(&database.url());
    let leads = tenure(&store, &claim(1)).await;
    let run = planned(leads.as_ref(), "probe", &["a"]).await;
    for code in ["53100", "58030", "XX000"] {
        database
            .execute(&format!(
                "create or replace function bursar.trouble() returns trigger language plpgsql as
                   $$ begin raise exception 'no room' using errcode = '{code}'; end $$;
                 create or replace trigger trouble before insert on bursar.batch
                   for each row execute function bursar.trouble()"
            ))
            .await;
        let error = leads.settle(&run, ALL, &mark()).await.expect_err("nothing is written");
        assert!(matches!(&error, StoreError::TryAgain { code: found, .. } if found == code), "{error:?}");
        assert_eq!(
            error.is_trouble_of_the_store(),
            code != "XX000",
            "a defect may be one unit's, and is halved down to it"
        );
    }
    database.execute("drop trigger trouble on bursar.batch").await;
    assert!(matches!(mine(leads.settle(&run, ALL, &mark()).await), SettleOutcome::Settled(_)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_of_another_release_is_passed_over_and_the_others_go_on() {
    let database = migrated().await;
    let store = open(&database.url());
    let leads = tenure(&store, &claim(1)).await;
    let good = planned(leads.as_ref(), "good", &["a"]).await;
    let newer = planned(leads.as_ref(), "newer", &["a"]).await;
    let row = job(leads.as_ref(), "third").await;
    let kind = RequestKind::Trigger { job: row.definition.name.clone(), tick: None, cutoff: None };
    let (first, second) = (
        store.request(&kind, &actor(), None).await.expect("filed"),
        store.request(&kind, &actor(), None).await.expect("filed"),
    );
    database.execute("update bursar.job set definition = '{\"of\": \"tomorrow\"}' where name = 'newer'").await;
    database.execute(&format!("update bursar.run set definition = '{{}}' where id = {}", newer.id)).await;
    database.execute(&format!("update bursar.request set kind = '{{\"newer\": 1}}' where id = '{first}'")).await;
    let jobs = mine(leads.jobs().await).jobs;
    assert_eq!(jobs.iter().map(|job| job.definition.name.as_str()).collect::<Vec<_>>(), ["good", "third"]);
    assert_eq!(mine(leads.open_runs().await).iter().map(|run| run.id).collect::<Vec<_>>(), [good.id]);
    assert_eq!(mine(leads.requests().await).iter().map(|request| request.id).collect::<Vec<_>>(), [second]);
}

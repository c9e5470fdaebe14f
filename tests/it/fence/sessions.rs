//! A tenure's sessions: bounded by the server, replaced when they die, compared with where the store stood, and gone when
//! the tenure is.

use std::sync::Arc;
use std::time::Duration;

use bursar::store::{BatchError, BatchHook, Effect, Entered, SettleOutcome, Store, StoreError, TenureLimits, UnitPick};

use super::ground::{
    accepted, claim, limits, lineage, mark, migrated, migrated_on, mine, open, planned, tenure, waiting_for_locks,
};
use crate::support::postgres::Restored;
use crate::support::{Database, Postgres, always};

async fn tenure_sessions(database: &Database) -> i64 {
    database.value("select count(*) from pg_stat_activity where application_name = 'bursar/settlement/replica-a' and datname = current_database()").await
}

const ALL: UnitPick = UnitPick::Fresh { after: 0, limit: 100 };

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_a_tenure_ends_its_sessions_whatever_they_do() {
    let database = migrated().await;
    let store = open(&database.url());
    let tenure = tenure(&store, &claim(1)).await;
    let run = planned(tenure.as_ref(), "probe", &["a", "b"]).await;
    let units: Vec<(i64,)> = database.rows("select id from bursar.unit").await;
    let mut foreign = database.connect().await;
    sqlx::raw_sql("begin; select id from bursar.unit for update").execute(&mut foreign).await.expect("free");
    let pick = UnitPick::Exactly(units.iter().map(|unit| unit.0).collect());
    let effect = mark();
    let (stuck, ()) = tokio::join!(tenure.settle(&run, pick, &effect), async {
        waiting_for_locks(&database, 1).await;
        let ended = tenure.end(Duration::from_secs(2)).await;
        // Here and not after it: what was not ended would be waited for.
        assert!(ended.confirmed && ended.terminated >= 1, "{ended:?}");
    });
    assert!(stuck.is_err(), "{stuck:?}");
    assert_eq!(tenure_sessions(&database).await, 0);
    assert_eq!(tenure.pulse().await, Err(StoreError::Ended { operation: "pulse" }));
    let again = tenure.end(Duration::from_secs(2)).await;
    assert!(again.confirmed && again.terminated == 0, "{again:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_operation_leaves_a_tenure_that_works_and_a_session_that_ends_with_it() {
    let database = migrated().await;
    let store = open(&database.url());
    let tenure = tenure(&store, &claim(1)).await;
    let run = planned(tenure.as_ref(), "probe", &["a", "b"]).await;
    let units: Vec<(i64,)> = database.rows("select id from bursar.unit").await;
    let mut foreign = database.connect().await;
    sqlx::raw_sql("begin; select id from bursar.unit for update").execute(&mut foreign).await.expect("free");
    let pick = UnitPick::Exactly(units.iter().map(|unit| unit.0).collect());
    {
        let effect = mark();
        let settle = tenure.settle(&run, pick, &effect);
        tokio::select! {
            done = settle => panic!("the rows are locked: {done:?}"),
            () = waiting_for_locks(&database, 1) => {}
        }
    }
    mine(tenure.pulse().await);
    let ended = tenure.end(Duration::from_secs(2)).await;
    assert!(ended.confirmed && ended.terminated >= 1, "{ended:?}");
    assert_eq!(tenure_sessions(&database).await, 0);
}

/// Waits inside of the batch's transaction.
struct Wait(Duration);

#[async_trait::async_trait]
impl BatchHook for Wait {
    async fn run(&self, _keys: &[String]) -> Result<(), BatchError> {
        tokio::time::sleep(self.0).await;
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_bounds_what_a_tenures_session_holds() {
    let database = migrated().await;
    let store = open(&database.url());
    let claim = claim(1);
    accepted(&store, &claim).await;
    let short = TenureLimits {
        idle_in_transaction_timeout: Duration::from_millis(200),
        lock_timeout: Duration::from_millis(200),
        ..limits()
    };
    let tenure = store.tenure(&claim, short, lineage(&store).await, always()).await.expect("a tenure");
    let run = planned(tenure.as_ref(), "probe", &["a", "b"]).await;
    let idle = tenure.settle(&run, ALL, &Effect::Mark(Arc::new(Wait(Duration::from_secs(1))))).await;
    assert!(idle.as_ref().is_err_and(StoreError::is_passing), "{idle:?}");
    let units: Vec<(i64,)> = database.rows("select id from bursar.unit").await;
    let exactly = UnitPick::Exactly(units.iter().map(|unit| unit.0).collect());
    let mut foreign = database.connect().await;
    sqlx::raw_sql("begin; select id from bursar.unit for update").execute(&mut foreign).await.expect("free");
    let locked = tenure.settle(&run, exactly, &mark()).await;
    assert!(matches!(&locked, Err(StoreError::TryAgain { code, .. }) if code == "55P03"), "{locked:?}");
    sqlx::raw_sql("commit").execute(&mut foreign).await.expect("commit");
    assert!(matches!(mine(tenure.settle(&run, ALL, &mark()).await), SettleOutcome::Settled(_)), "and works on");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_server_is_worked_with_at_once() {
    let server = Postgres::start();
    let database = migrated_on(&server).await;
    let store = open(&database.url());
    let tenure = tenure(&store, &claim(1)).await;
    let (first, second) = tokio::join!(tenure.pulse(), tenure.pulse());
    mine(first);
    mine(second);
    server.restart();
    mine(tenure.pulse().await);
    mine(tenure.pulse().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_forgot_is_noticed_on_the_next_session() {
    for how in [Restored::SameTimeline, Restored::NextTimeline] {
        let server = Postgres::start();
        let database = migrated_on(&server).await;
        let store = open(&database.url());
        let claim = claim(1);
        accepted(&store, &claim).await;
        let backup = server.backup();
        let tenure = store.tenure(&claim, limits(), lineage(&store).await, always()).await.expect("a tenure");
        planned(tenure.as_ref(), "probe", &["a", "b"]).await;
        database.execute("create table filler as select repeat('x', 1000) from generate_series(1, 20000)").await;
        mine(tenure.lineage().await);
        server.restore(&backup, how);
        let answer = tenure.pulse().await;
        assert!(matches!(answer, Err(StoreError::Forgot { .. })), "{how:?}: {answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_tenures_leave_no_session() {
    let database = migrated().await;
    let store = open(&database.url());
    for term in 1..=50 {
        let tenure = tenure(&store, &claim(term)).await;
        mine(tenure.pulse().await);
        assert!(tenure.end(Duration::from_secs(2)).await.confirmed);
        let late = tenure.pulse().await;
        assert!(!matches!(late, Ok(Entered::Mine(_))), "{late:?}");
    }
    assert_eq!(tenure_sessions(&database).await, 0);
    assert!(database.sessions().await <= 3, "the control pool's");
}

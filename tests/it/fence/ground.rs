//! What the tests of the fence stand on: a migrated database of their own, the product's store on it, and raw sessions
//! that do with the gate what paused or foreign clients would.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use bursar::clock;
use bursar::domain::job::{
    BatchDefinition, CatchUpOrder, CutoffRule, FoldRule, GapRule, HandlerDefinition, JobDefinition, Misfire, Overlap,
    ProbeDefinition, RetryDefinition, Timing,
};
use bursar::domain::run::RunState;
use bursar::domain::{Claim, ElectionName, JobName, TenureId, Term};
use bursar::store::postgres::{PgSettings, PgStore};
use bursar::store::{
    Actor, AdvanceOutcome, BatchError, BatchHook, Effect, Entered, JobChange, JobChangeOutcome, JobRow, Leader,
    Lineage, OpenRun, PlanOutcome, PlanSource, Store, StoreError, TenureLimits, TenureStore, TickFate, TickRecord,
    TicksOutcome, TicksRecord,
};
use chrono::{DateTime, Utc};
use sqlx::postgres::PgConnection;
use sqlx::{Connection, Row};

use crate::support::{Database, Postgres, always, eventually};

/// Past it an advance counts as failed.
pub const BOUND: Duration = Duration::from_secs(10);

pub async fn migrated_on(server: &Postgres) -> Database {
    server
        .database_from("store", async |database| {
            let store = open(&database.url());
            store.migrate().await.expect("an empty database can be migrated");
            store.close().await;
        })
        .await
}

/// A migrated database on the shared server.
pub async fn migrated() -> Database {
    migrated_on(Postgres::shared()).await
}

/// The product's store at an address.
pub fn open(url: &str) -> PgStore {
    let settings = PgSettings { url: url.into(), replica: "replica-a".to_owned(), ..PgSettings::default() };
    PgStore::new(&settings).expect("the settings are right")
}

pub fn election() -> ElectionName {
    ElectionName::new("settlement").expect("a name")
}

/// A claim on a term, under a tenure id of its own.
pub fn claim(term: i64) -> Claim {
    Claim {
        election: election(),
        term: Term::new(term).expect("not negative"),
        tenure_id: TenureId(clock::random_id()),
    }
}

pub fn leader() -> Leader {
    Leader { replica: "replica-a".to_owned(), host: "host-a".to_owned(), version: "0.0.1".to_owned() }
}

pub fn actor() -> Actor {
    Actor { user: "ann".to_owned(), host: "desk".to_owned() }
}

pub fn limits() -> TenureLimits {
    TenureLimits {
        connections: 4,
        statement_timeout: Duration::from_secs(20),
        lock_timeout: Duration::from_secs(10),
        idle_in_transaction_timeout: Duration::from_secs(20),
        acquire_timeout: Duration::from_secs(5),
    }
}

pub async fn lineage(store: &PgStore) -> Lineage {
    store.health().await.expect("a healthy store").lineage
}

/// Advances and expects acceptance.
pub async fn accepted(store: &PgStore, claim: &Claim) {
    let outcome = store.advance(claim, &leader(), BOUND).await.expect("an answer");
    assert_eq!(outcome, AdvanceOutcome::Accepted { halt: None }, "{claim}");
}

/// Advances and opens the tenure.
pub async fn tenure(store: &PgStore, claim: &Claim) -> Arc<dyn TenureStore> {
    accepted(store, claim).await;
    store.tenure(claim, limits(), lineage(store).await, always()).await.expect("a tenure")
}

/// What was done, of an answer that must be "mine".
#[track_caller]
pub fn mine<T: std::fmt::Debug>(answer: Result<Entered<T>, StoreError>) -> T {
    match answer {
        Ok(Entered::Mine(done)) => done,
        other => panic!("expected mine, found {other:?}"),
    }
}

/// The product's own entering statement.
pub const ENTER: &str = include_str!("../../../src/store/postgres/sql/enter.sql");

/// A raw session that has entered the fence under a claim and holds the gate.
pub async fn entered(database: &Database, claim: &Claim) -> PgConnection {
    let mut connection = database.connect().await;
    sqlx::raw_sql("begin isolation level read committed").execute(&mut connection).await.expect("begin");
    assert_eq!(enter(&mut connection, claim).await.expect("an answer"), "mine");
    connection
}

/// Enters the fence on a raw session, inside of its transaction.
pub async fn enter(connection: &mut PgConnection, claim: &Claim) -> Result<String, sqlx::Error> {
    let row = sqlx::query(ENTER)
        .bind(claim.election.as_str())
        .bind(claim.term.get())
        .bind(claim.tenure_id.0)
        .bind("begin")
        .fetch_one(connection)
        .await?;
    row.try_get("outcome")
}

/// Whether a raw session still answers.
pub async fn lives(connection: &mut PgConnection) -> bool {
    connection.ping().await.is_ok()
}

/// SQLSTATE of an error.
pub fn state_of(error: &sqlx::Error) -> String {
    error.as_database_error().and_then(sqlx::error::DatabaseError::code).map(Cow::into_owned).unwrap_or_default()
}

/// Waits until that many sessions of the database wait for a lock.
pub async fn waiting_for_locks(database: &Database, sessions: i64) {
    eventually(Duration::from_secs(10), "sessions wait for locks", async || {
        let waiting: Vec<(i64,)> = database
            .rows(
                "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()",
            )
            .await;
        (waiting == [(sessions,)]).then_some(())
    })
    .await;
}

/// A job of the test build's handler, minutely.
pub fn definition(name: &str) -> JobDefinition {
    JobDefinition {
        name: JobName::new(name).expect("a name"),
        election: election(),
        timing: Timing {
            cron: "* * * * *".to_owned(),
            timezone: chrono_tz::UTC,
            gap: GapRule::Skip,
            fold: FoldRule::Both,
            misfire: Misfire::RunLatest,
            misfire_grace: Duration::from_mins(1),
            catch_up_window: Duration::from_hours(48),
            catch_up_max: 1,
            catch_up_order: CatchUpOrder::Oldest,
            overlap: Overlap::Queue,
            cutoff: CutoffRule::Before(Duration::ZERO),
            business_days: None,
            run_deadline: Some(Duration::from_mins(45)),
        },
        handler: HandlerDefinition::Probe(ProbeDefinition::default()),
        batch: BatchDefinition { size: 100, concurrency: 2 },
        retry: RetryDefinition {
            max_attempts: 3,
            backoff_min: Duration::from_millis(10),
            backoff_max: Duration::from_millis(20),
        },
    }
}

/// Puts a job into the schedule, through the port.
pub async fn job(tenure: &dyn TenureStore, name: &str) -> JobRow {
    let definition = definition(name);
    let change = JobChange {
        name: definition.name.clone(),
        definition: Some(definition),
        expected: None,
        settled: Vec::new(),
        evaluated_until: DateTime::UNIX_EPOCH,
    };
    match mine(tenure.change_job(change).await) {
        JobChangeOutcome::Changed(Some(row)) => *row,
        other => panic!("the job is new: {other:?}"),
    }
}

/// A tick at a moment, with a fate.
pub fn tick(at: DateTime<Utc>, fate: TickFate) -> TickRecord {
    TickRecord { tick: at, due_at: at, cutoff_at: at, value_date: at.date_naive(), fate }
}

/// The run of a tick that is due now, being planned.
pub async fn opened(tenure: &dyn TenureStore, name: &str) -> OpenRun {
    let job = job(tenure, name).await;
    let due = job.evaluated_until;
    let record = TicksRecord { evaluated_until: due, ticks: vec![tick(due, TickFate::Open { caught_up: false })], job };
    match mine(tenure.record_ticks(record).await) {
        TicksOutcome::Recorded { opened, duplicates: 0 } => assert_eq!(opened.len(), 1),
        other => panic!("the tick is new: {other:?}"),
    }
    let runs = mine(tenure.open_runs().await);
    runs.into_iter().find(|run| run.definition.name.as_str() == name).expect("the run is open")
}

/// A planned run with units of these keys.
pub async fn planned(tenure: &dyn TenureStore, name: &str, keys: &[&str]) -> OpenRun {
    let mut run = opened(tenure, name).await;
    let source = PlanSource::Keys(keys.iter().map(|&key| key.to_owned()).collect());
    let outcome = mine(tenure.plan_page(&run, &source, None, 10_000).await);
    assert_eq!(outcome, PlanOutcome::Planned { units: keys.len() as u64, next: None });
    run.state = RunState::Open;
    run
}

/// Units are settled and nothing else.
pub fn mark() -> Effect {
    struct Nothing;
    #[async_trait::async_trait]
    impl BatchHook for Nothing {
        async fn run(&self, _keys: &[String]) -> Result<(), BatchError> {
            Ok(())
        }
    }
    Effect::Mark(Arc::new(Nothing))
}

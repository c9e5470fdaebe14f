//! A supervisor on a migrated database of its own, with everything else of the replica played by the test.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bursar::clock;
use bursar::domain::job::{
    BatchDefinition, CatchUpOrder, CutoffRule, FoldRule, GapRule, HandlerDefinition, JobDefinition, Misfire, Overlap,
    ProbeDefinition, RetryDefinition, Timing,
};
use bursar::domain::run::RunState;
use bursar::domain::unit::AttemptOutcome;
use bursar::domain::{Claim, ElectionName, JobName, TenureId, Term};
use bursar::store::postgres::{PgSettings, PgStore};
use bursar::store::{Actor, FenceHolder, Leader, RequestKind, RequestState, Store, StoreFigures, TenureLimits};
use bursar::tenure::{
    AcceptedMemory, AcceptedRecord, Begin, Ending, MemoryError, Order, Reports, ScheduleInForce, Supervisor,
    TenureDeps, TenureObserver, TenureSettings, Win,
};
use chrono::{DateTime, Utc};
use tokio::sync::{Semaphore, mpsc, watch};
use uuid::Uuid;

use crate::support::{BehindDoor, Database, Door, Postgres, eventually};

/// A wait for anything that a healthy tenure does on a busy machine.
pub const SOON: Duration = Duration::from_secs(30);

/// Connections of a tenure: enough for its batches, its sweep and its records.
const CONNECTIONS: u32 = 5;

/// What was reported, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    FenceTerm(Result<Term, String>),
    Accepted(Term),
    FirstWork(Term),
    PromotionFailed(Term, String),
    Fenced(Term, Option<FenceHolder>),
    Fault(Term, String),
    Ended(Term),
}

#[derive(Default)]
pub struct Recorder {
    said: Mutex<Vec<Said>>,
    beats: Mutex<u32>,
}

impl Recorder {
    fn say(&self, said: Said) {
        self.said.lock().expect("no panic holds it").push(said);
    }

    pub fn said(&self) -> Vec<Said> {
        self.said.lock().expect("no panic holds it").clone()
    }

    pub fn beats(&self) -> u32 {
        *self.beats.lock().expect("no panic holds it")
    }
}

impl Reports for Recorder {
    fn fence_term(&self, _: &ElectionName, term: Result<Term, String>) {
        self.say(Said::FenceTerm(term));
    }
    fn accepted(&self, claim: &Claim) {
        self.say(Said::Accepted(claim.term));
    }
    fn first_work(&self, claim: &Claim) {
        self.say(Said::FirstWork(claim.term));
    }
    fn promotion_failed(&self, claim: &Claim, why: &str) {
        self.say(Said::PromotionFailed(claim.term, why.to_owned()));
    }
    fn fenced(&self, claim: &Claim, found: Option<FenceHolder>) {
        self.say(Said::Fenced(claim.term, found));
    }
    fn fault(&self, claim: &Claim, why: &str) {
        self.say(Said::Fault(claim.term, why.to_owned()));
    }
    fn ended(&self, claim: &Claim) {
        self.say(Said::Ended(claim.term));
    }
    fn beat(&self) {
        *self.beats.lock().expect("no panic holds it") += 1;
    }
}

/// Counts what telemetry would.
#[derive(Default)]
pub struct Counter {
    counts: Mutex<BTreeMap<String, i64>>,
}

impl Counter {
    fn add(&self, what: impl Into<String>, count: i64) {
        *self.counts.lock().expect("no panic holds it").entry(what.into()).or_insert(0) += count;
    }

    pub fn count(&self, what: &str) -> i64 {
        self.counts.lock().expect("no panic holds it").get(what).copied().unwrap_or(0)
    }
}

impl TenureObserver for Counter {
    fn tick(&self, _: &JobName, outcome: &'static str) {
        self.add(format!("tick {outcome}"), 1);
    }
    fn tick_lag(&self, _: Duration) {}
    fn duplicate_runs_prevented(&self, count: u32) {
        self.add("duplicates", i64::from(count));
    }
    fn batch(&self, _: Duration) {
        self.add("batches", 1);
    }
    fn attempts(&self, outcome: AttemptOutcome, count: u64) {
        self.add(format!("attempts {}", outcome.as_str()), i64::try_from(count).expect("small"));
    }
    fn payout_attempts(&self, _: &'static str, _: u64) {}
    fn units_settled(&self, count: u64) {
        self.add("settled", i64::try_from(count).expect("small"));
    }
    fn in_flight_units(&self, change: i64) {
        self.add("in flight", change);
    }
    fn fencing_reject(&self, operation: &'static str) {
        self.add(format!("reject {operation}"), 1);
    }
    fn run_ended(&self, _: &JobName, state: RunState, _: Duration) {
        self.add(format!("run {}", state.as_str()), 1);
    }
    fn store_time(&self, _: DateTime<Utc>) {}
    fn figures(&self, _: &ElectionName, _: &StoreFigures) {
        self.add("figures", 1);
    }
    fn figures_gone(&self, _: &ElectionName) {
        self.add("figures gone", 1);
    }
}

/// The coordinator's memory.
#[derive(Default)]
pub struct Memory(Mutex<Option<AcceptedRecord>>);

impl Memory {
    pub fn remembered(&self) -> Option<AcceptedRecord> {
        self.0.lock().expect("no panic holds it").clone()
    }

    pub fn set(&self, record: AcceptedRecord) {
        *self.0.lock().expect("no panic holds it") = Some(record);
    }
}

/// One tenure's way to the memory.
struct MemoryOf(Arc<Memory>);

#[async_trait]
impl AcceptedMemory for MemoryOf {
    async fn get(&self, _: &ElectionName) -> Result<Option<AcceptedRecord>, MemoryError> {
        Ok(self.0.remembered())
    }
    async fn put(&self, _: &Claim, record: &AcceptedRecord) -> Result<(), MemoryError> {
        self.0.set(record.clone());
        Ok(())
    }
}

pub fn election() -> ElectionName {
    ElectionName::new("settlement").expect("a name")
}

pub fn job_name() -> JobName {
    JobName::new("probe").expect("a name")
}

pub fn actor() -> Actor {
    Actor { user: "ann".to_owned(), host: "desk".to_owned() }
}

/// Never by itself within any test.
pub const NEVER: &str = "0 0 29 2 *";

/// A job of the probe with small bounds.
pub fn job(cron: &str, probe: ProbeDefinition) -> JobDefinition {
    JobDefinition {
        name: job_name(),
        election: election(),
        timing: Timing {
            cron: cron.to_owned(),
            timezone: chrono_tz::UTC,
            gap: GapRule::Shift,
            fold: FoldRule::First,
            misfire: Misfire::RunLatest,
            misfire_grace: Duration::from_secs(30),
            catch_up_window: Duration::from_hours(48),
            catch_up_max: 1,
            catch_up_order: CatchUpOrder::Oldest,
            overlap: Overlap::Queue,
            cutoff: CutoffRule::Before(Duration::ZERO),
            business_days: None,
            run_deadline: None,
        },
        handler: HandlerDefinition::Probe(probe),
        batch: BatchDefinition { size: 500, concurrency: 2 },
        retry: RetryDefinition {
            max_attempts: 3,
            backoff_min: Duration::from_millis(20),
            backoff_max: Duration::from_millis(100),
        },
    }
}

/// The ground that a test stands on.
pub struct Ground {
    pub database: Database,
    pub store: Arc<PgStore>,
    pub reports: Arc<Recorder>,
    pub counter: Arc<Counter>,
    pub memory: Arc<Memory>,
    pub door: watch::Sender<Door>,
    schedule: watch::Sender<Arc<ScheduleInForce>>,
    orders: Option<mpsc::UnboundedSender<Order>>,
    supervisor: tokio::task::JoinHandle<()>,
}

pub async fn migrated() -> Database {
    Postgres::shared()
        .database_from("store", async |database| {
            let store = open(&database.url());
            store.migrate().await.expect("an empty database can be migrated");
            store.close().await;
        })
        .await
}

pub fn open(url: &str) -> PgStore {
    let settings = PgSettings { url: url.into(), replica: "replica-a".to_owned(), ..PgSettings::default() };
    PgStore::new(&settings).expect("the settings are right")
}

pub fn leader() -> Leader {
    Leader { replica: "replica-a".to_owned(), host: "host-a".to_owned(), version: "0.0.1".to_owned() }
}

fn settings(connections: u32) -> TenureSettings {
    TenureSettings {
        leader: leader(),
        limits: TenureLimits {
            connections,
            statement_timeout: Duration::from_secs(20),
            lock_timeout: Duration::from_secs(5),
            idle_in_transaction_timeout: Duration::from_secs(20),
            acquire_timeout: Duration::from_secs(5),
        },
        advance_within: Duration::from_secs(10),
        teardown_budget: Duration::from_secs(5),
        lease_ttl: Duration::from_secs(1),
    }
}

impl Ground {
    /// A supervisor on a database of its own.
    pub async fn with(jobs: Vec<JobDefinition>) -> Self {
        Self::on(migrated().await, jobs, CONNECTIONS)
    }

    /// The same, with fewer connections than there is work for.
    pub async fn with_connections(connections: u32, jobs: Vec<JobDefinition>) -> Self {
        Self::on(migrated().await, jobs, connections)
    }

    /// Another supervisor on the database of this one: another replica.
    pub fn at(other: &Self, jobs: Vec<JobDefinition>) -> Self {
        Self::on(other.database.clone(), jobs, CONNECTIONS)
    }

    fn on(database: Database, jobs: Vec<JobDefinition>, connections: u32) -> Self {
        let store = Arc::new(open(&database.url()));
        let (reports, counter) = (Arc::new(Recorder::default()), Arc::new(Counter::default()));
        let (schedule, in_force) = watch::channel(Arc::new(ScheduleInForce { jobs, fingerprint: String::new() }));
        let deps = TenureDeps {
            store: Arc::clone(&store) as Arc<dyn Store>,
            reports: Arc::clone(&reports) as Arc<dyn Reports>,
            observer: Arc::clone(&counter) as Arc<dyn TenureObserver>,
            schedule: in_force,
            permits: Arc::new(Semaphore::new(3)),
            receivers: Arc::default(),
            settings: settings(connections),
        };
        let (orders, received) = mpsc::unbounded_channel();
        #[expect(clippy::disallowed_methods, reason = "the ground owns it and joins it in `leave`")]
        let supervisor = tokio::spawn(Supervisor::new(Arc::new(deps)).run(received));
        Self {
            database,
            store,
            reports,
            counter,
            memory: Arc::default(),
            door: watch::Sender::new(Door::Open),
            schedule,
            orders: Some(orders),
            supervisor,
        }
    }

    pub fn order(&self, order: Order) {
        self.orders.as_ref().expect("not left").send(order).map_err(drop).expect("the supervisor runs");
    }

    pub fn edit(&self, jobs: Vec<JobDefinition>) {
        self.schedule.send_replace(Arc::new(ScheduleInForce { jobs, fingerprint: String::new() }));
    }

    /// Begins a tenure of this term.
    pub fn begin(&self, term: i64) -> Claim {
        let claim = Claim {
            election: election(),
            term: Term::new(term).expect("not negative"),
            tenure_id: TenureId(clock::random_id()),
        };
        self.order(Order::Begin(Begin {
            claim: claim.clone(),
            gate: Arc::new(BehindDoor::of(&self.door)),
            memory: Arc::new(MemoryOf(Arc::clone(&self.memory))),
            win: Win { handed_over: false, vacant_for: None, at: clock::boottime() },
        }));
        claim
    }

    /// Begins a tenure and waits for its first work.
    pub async fn lead(&self, term: i64) -> Claim {
        let claim = self.begin(term);
        self.hear(&Said::FirstWork(claim.term)).await;
        claim
    }

    /// Waits for a report.
    pub async fn hear(&self, said: &Said) {
        eventually(SOON, &format!("{said:?}, heard so far {:?}", self.reports.said()), async || {
            self.reports.said().contains(said).then_some(())
        })
        .await;
    }

    /// Ends a tenure and waits for its end.
    pub async fn end(&self, claim: &Claim, ending: Ending) {
        self.end_because(claim, ending, "drain").await;
    }

    /// Ends a tenure as one whose leader may have died of its work: a fault, not an end that is noted as no death.
    pub async fn break_down(&self, claim: &Claim) {
        self.end_because(claim, Ending::Abrupt, "fault").await;
    }

    async fn end_because(&self, claim: &Claim, ending: Ending, reason: &str) {
        self.order(Order::End { claim: claim.clone(), ending, reason: reason.to_owned() });
        self.hear(&Said::Ended(claim.term)).await;
    }

    /// Asks for a manual run and answers its id.
    pub async fn trigger(&self) -> i64 {
        let kind = RequestKind::Trigger { job: job_name(), tick: None, cutoff: None };
        // First work comes before the jobs are brought up to the schedule.
        let request =
            eventually(SOON, "the job is known", async || self.store.request(&kind, &actor(), None).await.ok()).await;
        match self.answered(request).await {
            RequestState::Done { run, .. } => run,
            other => panic!("the trigger came to {other:?}"),
        }
    }

    /// Waits until the leader has taken a request.
    pub async fn answered(&self, request: Uuid) -> RequestState {
        eventually(SOON, "the request is taken", async || {
            match self.store.request_state(request).await.expect("an answer").expect("it is there") {
                RequestState::Waiting => None,
                state => Some(state),
            }
        })
        .await
    }

    /// Waits until a run is in a state.
    pub async fn run_in(&self, run: i64, state: &str) {
        let query = format!("select state from bursar.run where id = {run}");
        eventually(SOON, &format!("run {run} is {state}"), async || {
            (self.database.value::<String>(&query).await == state).then_some(())
        })
        .await;
    }

    pub async fn units_in(&self, run: i64, state: &str) -> i64 {
        self.database
            .value(&format!("select count(*) from bursar.unit where run_id = {run} and state = '{state}'"))
            .await
    }

    /// Waits until so many units of a run have ended settled.
    pub async fn settled_at_least(&self, run: i64, count: i64) {
        eventually(SOON, &format!("{count} units are settled"), async || {
            (self.units_in(run, "settled").await >= count).then_some(())
        })
        .await;
    }

    /// Sessions of tenures on this ground's database.
    pub async fn tenure_sessions(&self) -> i64 {
        self.database
            .value(&format!(
                "select count(*) from pg_stat_activity where datname = '{}' and application_name like 'bursar/{}/%'",
                self.database.name(),
                election()
            ))
            .await
    }

    /// Lets the supervisor go and waits for all that it owns.
    pub async fn leave(mut self) {
        self.orders = None;
        self.supervisor.await.expect("the supervisor ends in good order");
        self.store.close().await;
    }
}

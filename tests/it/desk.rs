//! A store with a leader, worked by hand through the port: what the ledger, import and audit tests stand on.
//!
//! It is PostgreSQL's unless a test says otherwise; the desk does nothing past the port, so that it is the same on any.

mod ground;
mod samples;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use bursar::clock::random_id;
use bursar::domain::entry::NewEntry;
use bursar::domain::job::{
    BatchDefinition, CatchUpOrder, CutoffRule, FoldRule, GapRule, HandlerDefinition, JobDefinition, LedgerDefinition,
    Misfire, Overlap, PayoutDefinition, Release, RetryDefinition, Timing,
};
use bursar::domain::money::Currency;
use bursar::domain::{Claim, ElectionName, JobName, TenureId, Term};
use bursar::store::{
    Actor, AdvanceOutcome, BatchCounts, Charge, Effect, Entered, FinishOutcome, ImportOutcome, ImportRecord, JobChange,
    JobChangeOutcome, JobRow, Leader, OpenRun, PlanOutcome, PlanSource, SettleOutcome, Store, StoreError, TenureLimits,
    TenureStore, TickFate, TickRecord, TicksOutcome, TicksRecord, UnitFilter, UnitPick, UnitView,
};
use chrono::{DateTime, TimeDelta, Utc};

pub(crate) use self::ground::on_every_store;
pub use self::ground::{Ground, SqliteFile};
pub use self::samples::{bulk, capture, entry, file};
use super::outside::ground as receiving;
use super::support::{Database, always, eventually};

/// Units of a batch, unless a test takes another.
const BATCH: u32 = 1000;

/// The store and the tenure that works on it.
pub struct Desk<D = Database> {
    pub database: D,
    pub store: Arc<dyn Store>,
    pub tenure: Arc<dyn TenureStore>,
    pub claim: Claim,
    ticks: AtomicI64,
}

/// The answer of an operation that is expected to be allowed.
pub fn mine<T: std::fmt::Debug>(answer: Result<Entered<T>, StoreError>) -> T {
    match answer.expect("the store answers") {
        Entered::Mine(done) => done,
        other => panic!("the claim is in force: {other:?}"),
    }
}

pub fn currency(code: &str) -> Currency {
    Currency::new(code).expect("a test's currency is one")
}

pub fn election() -> ElectionName {
    ElectionName::new("settlement").expect("a name")
}

pub fn actor() -> Actor {
    Actor { user: "tester".to_owned(), host: "bench".to_owned() }
}

impl Desk {
    /// As [`Desk::new`], on PostgreSQL.
    pub async fn open() -> Self {
        Self::new().await
    }
}

impl<D: Ground> Desk<D> {
    /// A migrated store of its own, an advanced fence, an open tenure.
    pub async fn new() -> Self {
        Self::on(Self::migrated().await).await
    }

    /// A migrated store of its own, that nobody ever led.
    pub async fn migrated() -> D {
        let database = D::like("desk", async |_| {}).await;
        // A template's identity is copied with it; a deployment has its own.
        let id = random_id();
        database.broken_by(&format!("update bursar.deployment set deployment_id = '{id}'")).await;
        database
    }

    /// The next leader of a store that is migrated.
    pub async fn on(database: D) -> Self {
        let store = database.store();
        let fence = store.fence(&election()).await.expect("the store answers");
        let (claim, tenure) = lead(&store, fence.map_or(1, |fence| fence.holder.term.get() + 1)).await;
        Self { database, store, tenure, claim, ticks: AtomicI64::new(0) }
    }

    /// Another leader takes over: the fence moves on.
    pub async fn succeed(&mut self) {
        let next = self.claim.term.get() + 1;
        (self.claim, self.tenure) = lead(&self.store, next).await;
    }

    /// A second store on the same database, as another process has it.
    pub fn another_store(&self) -> Arc<dyn Store> {
        self.database.store()
    }

    /// A job, in the schedule.
    pub async fn job(&self, name: &str, ledger: LedgerDefinition) -> Job {
        let definition = definition(name, HandlerDefinition::Ledger(ledger));
        self.job_of(definition).await
    }

    /// A job of any handler.
    pub async fn job_of(&self, definition: JobDefinition) -> Job {
        let change = JobChange {
            name: definition.name.clone(),
            definition: Some(definition),
            expected: None,
            settled: Vec::new(),
            evaluated_until: DateTime::UNIX_EPOCH,
        };
        match mine(self.tenure.change_job(change).await) {
            JobChangeOutcome::Changed(Some(row)) => Job { id: row.id, row: *row },
            other => panic!("the job is new: {other:?}"),
        }
    }

    /// A run of the job's next tick, being planned, with this cutoff.
    pub async fn run(&self, job: &Job, cutoff_at: DateTime<Utc>) -> OpenRun {
        let at = base() + TimeDelta::minutes(self.ticks.fetch_add(1, Ordering::Relaxed));
        let tick = TickRecord {
            tick: at,
            due_at: at,
            cutoff_at,
            value_date: "2026-11-30".parse().expect("a day"),
            fate: TickFate::Open { caught_up: false },
        };
        let record = TicksRecord { evaluated_until: job.row.evaluated_until, ticks: vec![tick], job: job.row.clone() };
        match mine(self.tenure.record_ticks(record).await) {
            TicksOutcome::Recorded { opened, duplicates: 0 } => assert_eq!(opened.len(), 1),
            other => panic!("the tick is new: {other:?}"),
        }
        let runs = mine(self.tenure.open_runs().await);
        runs.into_iter().find(|run| run.job_id == job.id && run.tick == at).expect("the run is open")
    }

    /// A run with the store's now as its cutoff, planned.
    pub async fn planned(&self, job: &Job) -> OpenRun {
        let before = self.now().await;
        // A store's clock may count in milliseconds: what was written just now is before the cutoff.
        let cutoff = eventually(Duration::from_secs(10), "the store's clock goes on", async || {
            let now = self.now().await;
            (now > before).then_some(now)
        })
        .await;
        let run = self.run(job, cutoff).await;
        self.plan(&run).await;
        run
    }

    /// A run with the store's now as its cutoff, planned, settled and ended.
    pub async fn settled(&self, job: &Job) -> OpenRun {
        let run = self.planned(job).await;
        self.settle(&run).await;
        run
    }

    pub async fn now(&self) -> DateTime<Utc> {
        self.store.now().await.expect("the store answers")
    }

    /// Plans a run to its end; answers its units.
    pub async fn plan(&self, run: &OpenRun) -> u64 {
        let HandlerDefinition::Ledger(ledger) = &run.definition.handler else { panic!("a ledger job") };
        self.plan_from(run, &PlanSource::Ledger(ledger.clone()), 700).await
    }

    /// Plans a run from a source, in pages of a size.
    pub async fn plan_from(&self, run: &OpenRun, source: &PlanSource, page: u32) -> u64 {
        let (mut planned, mut after) = (0, None::<String>);
        loop {
            match mine(self.tenure.plan_page(run, source, after.as_deref(), page).await) {
                PlanOutcome::Planned { units, next: None } => return planned + units,
                PlanOutcome::Planned { units, next } => {
                    planned += units;
                    assert!(next > after, "pages go forward");
                    after = next;
                }
                PlanOutcome::NotPlanning(state) => panic!("run {} is {state:?}", run.id),
                PlanOutcome::SetAside { error } => panic!("run {}: {error}", run.id),
            }
        }
    }

    /// One batch.
    pub async fn batch(&self, run: &OpenRun, pick: UnitPick) -> SettleOutcome {
        mine(self.tenure.settle(run, pick, &effect(run)).await)
    }

    /// Settles a run to its end, halving batches that fail; answers what all batches did.
    pub async fn settle(&self, run: &OpenRun) -> BatchCounts {
        self.settle_in(run, BATCH).await
    }

    /// As [`Self::settle`], in batches of a size.
    pub async fn settle_in(&self, run: &OpenRun, limit: u32) -> BatchCounts {
        let mut sum = BatchCounts::default();
        loop {
            match self.batch(run, UnitPick::Fresh { after: 0, limit }).await {
                SettleOutcome::Nothing => break,
                SettleOutcome::Settled(counts) => add(&mut sum, counts),
                SettleOutcome::Failed { units, .. } => self.halve(run, units, &mut sum).await,
            }
        }
        match mine(self.tenure.finish_run(run.id).await) {
            FinishOutcome::Finished(_) => sum,
            other => panic!("run {} has ended: {other:?}", run.id),
        }
    }

    async fn halve(&self, run: &OpenRun, units: Vec<(i64, u32)>, sum: &mut BatchCounts) {
        let mut parts = VecDeque::from([units]);
        while let Some(part) = parts.pop_front() {
            let pick = UnitPick::Exactly(part.iter().map(|unit| unit.0).collect());
            match self.batch(run, pick).await {
                SettleOutcome::Nothing => {}
                SettleOutcome::Settled(counts) => add(sum, counts),
                SettleOutcome::Failed { units, error } if units.len() == 1 => {
                    let (unit, attempts) = units[0];
                    let charge = Charge { unit, attempts, error: error.message, again_in: None };
                    assert_eq!(mine(self.tenure.charge(run.id, &[charge]).await), 1);
                }
                SettleOutcome::Failed { mut units, .. } => {
                    let right = units.split_off(units.len() / 2);
                    parts.extend([units, right]);
                }
            }
        }
    }

    /// Imports entries of a source; they must be new.
    pub async fn import(&self, source: &str, entries: Vec<NewEntry>) -> ImportRecord {
        match self.store.import(&file(source, "entries.csv", entries), &actor()).await.expect("the store answers") {
            ImportOutcome::Imported { import, .. } => import,
            other => panic!("the entries are new: {other:?}"),
        }
    }

    /// The units of a run.
    pub async fn units(&self, run: &OpenRun) -> Vec<UnitView> {
        let filter = UnitFilter { run: Some(run.id), limit: 10_000, ..UnitFilter::default() };
        self.store.units(&filter).await.expect("the store answers")
    }

    /// The unit of a key.
    pub async fn unit(&self, run: &OpenRun, key: &str) -> UnitView {
        let filter = UnitFilter { run: Some(run.id), key: Some(key.to_owned()), limit: 10, ..UnitFilter::default() };
        let mut units = self.store.units(&filter).await.expect("the store answers");
        assert_eq!(units.len(), 1, "one unit {key}");
        units.remove(0)
    }

    /// Per merchant and currency: what its entries that stand come to, less fees, carries left out.
    pub async fn standing(&self) -> BTreeMap<String, i64> {
        let query = "select currency || ':' || merchant, sum(amount - fee)::bigint from bursar.entry
                     where kind <> 'carry' and withdrawn_at is null group by 1";
        self.database.rows::<(String, i64)>(query).await.into_iter().filter(|(_, sum)| *sum != 0).collect()
    }

    /// Asserts that the audit finds nothing.
    pub async fn audit_is_clean(&self) {
        let report = self.store.audit().await.expect("the store answers");
        let broken: Vec<_> = report.checks.iter().filter(|check| check.violations > 0).collect();
        assert!(broken.is_empty(), "{broken:#?}");
    }
}

/// A job as its row has it.
pub struct Job {
    pub id: i64,
    row: JobRow,
}

/// Ticks of the tests: an hour and more ago.
fn base() -> DateTime<Utc> {
    "2026-01-10T06:00:00Z".parse().expect("a time")
}

async fn lead(store: &Arc<dyn Store>, term: i64) -> (Claim, Arc<dyn TenureStore>) {
    let claim =
        Claim { election: election(), term: Term::new(term).expect("not negative"), tenure_id: TenureId(random_id()) };
    let leader = Leader { replica: "desk".to_owned(), host: "bench".to_owned(), version: "0".to_owned() };
    let advanced = store.advance(&claim, &leader, Duration::from_secs(10)).await.expect("the store answers");
    assert!(matches!(advanced, AdvanceOutcome::Accepted { .. }), "{advanced:?}");
    let limits = TenureLimits {
        connections: 4,
        statement_timeout: Duration::from_mins(1),
        lock_timeout: Duration::from_secs(20),
        idle_in_transaction_timeout: Duration::from_secs(20),
        acquire_timeout: Duration::from_secs(30),
    };
    let lineage = store.health().await.expect("the store is fit").lineage;
    let tenure = store.tenure(&claim, limits, lineage, always()).await.expect("the claim is in force");
    (claim, tenure)
}

/// A ledger that takes everything, without limits, and leaves its payouts in the store.
pub fn left_in_store() -> LedgerDefinition {
    LedgerDefinition { payout: PayoutDefinition::None, ..everything() }
}

/// A ledger that takes everything, without limits, and sends its payouts.
pub fn everything() -> LedgerDefinition {
    LedgerDefinition {
        sources: BTreeSet::new(),
        currencies: BTreeSet::new(),
        merchants: BTreeSet::new(),
        minimum_payout: BTreeMap::new(),
        maximum_payout: BTreeMap::new(),
        release: Release::Auto,
        payout: PayoutDefinition::Http(Box::new(receiving::definition("https://bank.test/payouts", false))),
    }
}

/// A job definition around a handler.
pub fn definition(name: &str, handler: HandlerDefinition) -> JobDefinition {
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
            run_deadline: None,
        },
        handler,
        batch: BatchDefinition { size: BATCH, concurrency: 1 },
        retry: RetryDefinition {
            max_attempts: 3,
            backoff_min: Duration::from_millis(1),
            backoff_max: Duration::from_millis(10),
        },
    }
}

/// The effect that a run's definition asks for.
pub fn effect(run: &OpenRun) -> Effect {
    match &run.definition.handler {
        HandlerDefinition::Ledger(ledger) => Effect::Ledger(ledger.clone()),
        HandlerDefinition::Sql(_)
        | HandlerDefinition::Http(_)
        | HandlerDefinition::Command(_)
        | HandlerDefinition::Probe(_) => panic!("a ledger job"),
    }
}

fn add(sum: &mut BatchCounts, more: BatchCounts) {
    sum.settled += more.settled;
    sum.carried += more.carried;
    sum.empty += more.empty;
    sum.instructions += more.instructions;
    sum.taken += more.taken;
    sum.last_unit = more.last_unit;
}

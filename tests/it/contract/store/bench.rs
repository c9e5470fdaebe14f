//! What a case of the contract stands on: a store of its own, and the ways of the port in few words. Nothing here knows which
//! store it is.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bursar::clock::random_id;
use bursar::domain::entry::NewEntry;
use bursar::domain::job::{HandlerDefinition, JobDefinition, ProbeDefinition, ProbeShape};
use bursar::domain::run::RunState;
use bursar::domain::{Claim, ElectionName, TenureId, Term};
use bursar::store::{
    Admission, AdvanceOutcome, BatchCounts, BatchError, BatchHook, CallFate, CallRecord, Charge, Effect, Entered,
    FenceHolder, FenceReject, FinishOutcome, ImportOutcome, ImportRecord, JobChange, JobChangeOutcome, JobRow, Leader,
    Lineage, OpenRun, PlanOutcome, PlanSource, RequestKind, RunFilter, SettleOutcome, Store, TenureLimits, TenureStore,
    TickFate, TickRecord, TicksOutcome, TicksRecord, UnitFilter, UnitPick, UnitView,
};
use chrono::{DateTime, TimeDelta, Utc};
use uuid::Uuid;

pub use crate::desk::{actor, bulk, capture, currency, definition, entry, everything, file, left_in_store, mine};
use crate::support::eventually;

/// One adapter of the port.
#[async_trait(?Send)]
pub trait Ground {
    /// An empty, migrated store of its own.
    async fn fresh(&self) -> Arc<dyn Store>;
}

/// Past it an advance counts as failed.
pub const BOUND: Duration = Duration::from_secs(10);
/// The longest that a refusal takes to be on record: it is written down aside.
const NOTED_WITHIN: Duration = Duration::from_secs(10);
/// A wait that is over with the next look.
pub const SOON: Option<Duration> = Some(Duration::from_millis(1));
/// A wait that is over after the case.
pub const LATER: Option<Duration> = Some(Duration::from_hours(1));
/// What opens a run.
pub const OPEN: TickFate = TickFate::Open { caught_up: false };

/// A store and what a case does with it.
pub struct Bench {
    pub store: Arc<dyn Store>,
    ticks: AtomicI64,
}

pub fn election() -> ElectionName {
    ElectionName::new("settlement").expect("a name")
}

/// A claim on a term, under a tenure id of its own.
pub fn claim(term: i64) -> Claim {
    claim_of(election(), term)
}

pub fn claim_of(election: ElectionName, term: i64) -> Claim {
    Claim { election, term: Term::new(term).expect("not negative"), tenure_id: TenureId(random_id()) }
}

pub fn holder(claim: &Claim) -> FenceHolder {
    FenceHolder { term: claim.term, tenure_id: claim.tenure_id }
}

pub fn leader() -> Leader {
    Leader { replica: "replica-a".to_owned(), host: "host-a".to_owned(), version: "0.0.1".to_owned() }
}

/// A job of the test build's handler.
pub fn probe(name: &str) -> JobDefinition {
    definition(name, HandlerDefinition::Probe(ProbeDefinition::default()))
}

/// A job whose units are calls.
pub fn calling(name: &str, idempotent: bool) -> JobDefinition {
    let probe = ProbeDefinition { shape: ProbeShape::Outside, idempotent, ..ProbeDefinition::default() };
    definition(name, HandlerDefinition::Probe(probe))
}

/// Units of these keys.
pub fn keys(keys: &[&str]) -> PlanSource {
    PlanSource::Keys(keys.iter().map(|&key| key.to_owned()).collect())
}

/// Units never tried, from the first.
pub const fn fresh(limit: u32) -> UnitPick {
    UnitPick::Fresh { after: 0, limit }
}

/// A job that is new.
pub fn new_job(definition: JobDefinition) -> JobChange {
    JobChange {
        name: definition.name.clone(),
        definition: Some(definition),
        expected: None,
        settled: Vec::new(),
        evaluated_until: DateTime::UNIX_EPOCH,
    }
}

/// No change of a job that is there.
pub fn change(row: &JobRow) -> JobChange {
    JobChange {
        name: row.definition.name.clone(),
        definition: Some(row.definition.clone()),
        expected: Some(row.clone()),
        settled: Vec::new(),
        evaluated_until: row.evaluated_until,
    }
}

/// A tick at a moment, with a fate.
pub fn tick(at: DateTime<Utc>, fate: TickFate) -> TickRecord {
    TickRecord { tick: at, due_at: at, cutoff_at: at, value_date: at.date_naive(), fate }
}

pub fn charge(unit: i64, attempts: u32, again_in: Option<Duration>) -> Charge {
    Charge { unit, attempts, error: "it failed".to_owned(), again_in }
}

pub fn call_record(instruction: i64, attempt: u32, fate: CallFate) -> CallRecord {
    CallRecord { instruction, attempt, fate }
}

/// Whether something may begin, at any time.
pub struct Admits(pub bool);

#[async_trait]
impl Admission for Admits {
    async fn admitted(&self) -> bool {
        self.0
    }
}

/// A hook that looks at a batch's keys.
struct Looks<F>(F);

#[async_trait]
impl<F: Fn(&[String]) -> Result<(), BatchError> + Send + Sync> BatchHook for Looks<F> {
    async fn run(&self, keys: &[String]) -> Result<(), BatchError> {
        self.0(keys)
    }
}

/// Units are settled and nothing else.
pub fn mark() -> Effect {
    Effect::Mark(Arc::new(Looks(|_: &[String]| Ok(()))))
}

/// The same, but one key fails the batch that it is in.
pub fn refusing(key: &'static str) -> Effect {
    Effect::Mark(Arc::new(Looks(move |keys: &[String]| {
        if keys.iter().any(|found| found == key) {
            return Err(BatchError { message: format!("{key} is refused"), permanent: false });
        }
        Ok(())
    })))
}

/// The effect that a run's definition asks for.
pub fn effect(run: &OpenRun) -> Effect {
    match &run.definition.handler {
        HandlerDefinition::Ledger(ledger) => Effect::Ledger(ledger.clone()),
        HandlerDefinition::Sql(_)
        | HandlerDefinition::Http(_)
        | HandlerDefinition::Command(_)
        | HandlerDefinition::Probe(_) => mark(),
    }
}

impl Bench {
    pub async fn on(ground: &dyn Ground) -> Self {
        Self::of(ground.fresh().await)
    }

    /// On a store of one's own.
    pub fn of(store: Arc<dyn Store>) -> Self {
        Self { store, ticks: AtomicI64::new(0) }
    }

    pub async fn now(&self) -> DateTime<Utc> {
        self.store.now().await.expect("an answer")
    }

    pub async fn lineage(&self) -> Lineage {
        self.store.health().await.expect("a healthy store").lineage
    }

    /// Advances and expects acceptance.
    pub async fn accepted(&self, claim: &Claim) {
        let outcome = self.store.advance(claim, &leader(), BOUND).await.expect("an answer");
        assert_eq!(outcome, AdvanceOutcome::Accepted { halt: None }, "{claim}");
    }

    /// Opens the fenced half under a claim, whether or not it is in force.
    pub async fn tenure(&self, claim: &Claim) -> Arc<dyn TenureStore> {
        self.tenure_where(claim, Admits(true)).await
    }

    /// The same, where something may begin or may not.
    pub async fn tenure_where(&self, claim: &Claim, admits: Admits) -> Arc<dyn TenureStore> {
        let limits = TenureLimits {
            connections: 2,
            statement_timeout: Duration::from_secs(20),
            lock_timeout: Duration::from_secs(10),
            idle_in_transaction_timeout: Duration::from_secs(20),
            acquire_timeout: Duration::from_secs(20),
        };
        self.store.tenure(claim, limits, self.lineage().await, Arc::new(admits)).await.expect("a tenure")
    }

    /// Advances to a term, and opens the tenure.
    pub async fn lead(&self, term: i64) -> Arc<dyn TenureStore> {
        self.lead_of(&claim(term)).await
    }

    pub async fn lead_of(&self, claim: &Claim) -> Arc<dyn TenureStore> {
        self.accepted(claim).await;
        self.tenure(claim).await
    }

    /// Puts a job into the schedule.
    pub async fn job(&self, tenure: &dyn TenureStore, definition: JobDefinition) -> JobRow {
        match mine(tenure.change_job(new_job(definition)).await) {
            JobChangeOutcome::Changed(Some(row)) => *row,
            other => panic!("the job is new: {other:?}"),
        }
    }

    /// A tick that no other of this bench is, due long ago.
    pub fn tick(&self) -> TickRecord {
        let base: DateTime<Utc> = "2026-01-10T06:00:00Z".parse().expect("a time");
        tick(base + TimeDelta::minutes(self.ticks.fetch_add(1, Ordering::Relaxed)), OPEN)
    }

    /// A run of the job with that cutoff, being planned.
    pub async fn run(&self, tenure: &dyn TenureStore, job: &JobRow, cutoff_at: DateTime<Utc>) -> OpenRun {
        let tick = TickRecord { cutoff_at, ..self.tick() };
        let at = tick.tick;
        let record = TicksRecord { evaluated_until: job.evaluated_until, ticks: vec![tick], job: job.clone() };
        match mine(tenure.record_ticks(record).await) {
            TicksOutcome::Recorded { opened, duplicates: 0 } => assert_eq!(opened.len(), 1),
            other => panic!("the tick is new: {other:?}"),
        }
        let runs = mine(tenure.open_runs().await);
        runs.into_iter().find(|run| run.job_id == job.id && run.tick == at).expect("the run is open")
    }

    /// A job of that name with a run that is being planned.
    pub async fn opened(&self, tenure: &dyn TenureStore, definition: JobDefinition) -> OpenRun {
        let job = self.job(tenure, definition).await;
        self.run(tenure, &job, self.now().await).await
    }

    /// Plans a run from a source, in pages; answers its units.
    pub async fn plan(&self, tenure: &dyn TenureStore, run: &OpenRun, source: &PlanSource, page: u32) -> u64 {
        let (mut planned, mut after) = (0, None::<String>);
        loop {
            match mine(tenure.plan_page(run, source, after.as_deref(), page).await) {
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

    /// A job with a planned run of these keys.
    pub async fn planned(&self, tenure: &dyn TenureStore, definition: JobDefinition, of: &[&str]) -> OpenRun {
        let mut run = self.opened(tenure, definition).await;
        assert_eq!(self.plan(tenure, &run, &keys(of), 100).await, of.len() as u64);
        run.state = RunState::Open;
        run
    }

    /// A planned run of a ledger job, with the store's now as its cutoff.
    pub async fn netted(&self, tenure: &dyn TenureStore, job: &JobRow) -> OpenRun {
        let run = self.run(tenure, job, self.now().await).await;
        let HandlerDefinition::Ledger(ledger) = &run.definition.handler else { panic!("a ledger job") };
        self.plan(tenure, &run, &PlanSource::Ledger(ledger.clone()), 50).await;
        run
    }

    /// The same, settled and ended.
    pub async fn settled(&self, tenure: &dyn TenureStore, job: &JobRow) -> OpenRun {
        let run = self.netted(tenure, job).await;
        self.settle(tenure, &run).await;
        run
    }

    /// Settles a run to its end.
    pub async fn settle(&self, tenure: &dyn TenureStore, run: &OpenRun) -> BatchCounts {
        let mut sum = BatchCounts::default();
        loop {
            match mine(tenure.settle(run, fresh(1000), &effect(run)).await) {
                SettleOutcome::Nothing => break,
                SettleOutcome::Settled(counts) => {
                    sum.settled += counts.settled;
                    sum.carried += counts.carried;
                    sum.empty += counts.empty;
                    sum.instructions += counts.instructions;
                }
                failed @ SettleOutcome::Failed { .. } => panic!("no unit is bad: {failed:?}"),
            }
        }
        match mine(tenure.finish_run(run.id).await) {
            FinishOutcome::Finished(_) => sum,
            other => panic!("run {} has ended: {other:?}", run.id),
        }
    }

    /// Imports entries of a source; they must be new.
    pub async fn import(&self, source: &str, entries: Vec<NewEntry>) -> ImportRecord {
        match self.store.import(&file(source, "entries.csv", entries), &actor()).await.expect("an answer") {
            ImportOutcome::Imported { import, .. } => import,
            other => panic!("the entries are new: {other:?}"),
        }
    }

    /// The units of a run.
    pub async fn units(&self, run: i64) -> Vec<UnitView> {
        let filter = UnitFilter { run: Some(run), limit: 10_000, ..UnitFilter::default() };
        self.store.units(&filter).await.expect("an answer")
    }

    /// The unit of a key.
    pub async fn unit(&self, run: i64, key: &str) -> UnitView {
        let filter = UnitFilter { run: Some(run), key: Some(key.to_owned()), limit: 10, ..UnitFilter::default() };
        let mut units = self.store.units(&filter).await.expect("an answer");
        assert_eq!(units.len(), 1, "one unit {key}");
        units.remove(0)
    }

    /// State and deaths of a run.
    pub async fn run_state(&self, run: i64) -> (RunState, u32) {
        let view = self.store.run_by_id(run).await.expect("an answer").expect("there is the run");
        (view.summary.state, view.deaths)
    }

    /// Asks for units of a run to be tried again.
    pub async fn ask_retry(&self, run: i64, of: &[&str]) -> Uuid {
        let kind = RequestKind::RetryUnits { run, keys: of.iter().map(|&key| key.to_owned()).collect() };
        self.store.request(&kind, &actor(), Some("looked into")).await.expect("filed")
    }

    /// Everything that the port shows and that only a fenced operation, an operator or an import may change.
    pub async fn picture(&self) -> String {
        let mut status = self.store.status().await.expect("an answer");
        (status.now, status.fencing_rejects) = (DateTime::UNIX_EPOCH, 0);
        let runs = self.store.runs(&RunFilter { limit: 10_000, ..RunFilter::default() }).await.expect("an answer");
        let mut views = Vec::new();
        for run in &runs {
            views.push(self.store.run_by_id(run.id).await.expect("an answer"));
        }
        let units = self.store.units(&UnitFilter { limit: 10_000, ..UnitFilter::default() }).await.expect("an answer");
        let history = self.store.history(10_000).await.expect("an answer");
        let imports = self.store.imports(10_000).await.expect("an answer");
        let parts: [&dyn Debug; 6] = [&status, &views, &units, &history.terms, &history.acts, &imports];
        format!("{parts:#?}")
    }

    /// Waits until that many refusals are on record, and gives them, oldest first.
    pub async fn refusals(&self, count: usize) -> Vec<FenceReject> {
        let found = eventually(NOTED_WITHIN, "the refusals are on record", async || {
            let found = self.store.history(10_000).await.expect("an answer").rejects;
            (found.len() >= count).then_some(found)
        })
        .await;
        assert_eq!(found.len(), count, "{found:#?}");
        found.into_iter().rev().collect()
    }

    /// Asserts that the audit finds nothing.
    pub async fn audit_is_clean(&self) {
        let report = self.store.audit().await.expect("an answer");
        let broken: Vec<_> = report.checks.iter().filter(|check| check.violations > 0).collect();
        assert!(broken.is_empty(), "{broken:#?}");
    }
}

/// Asserts that an answer is the refusal by that holder.
#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "an answer is asserted where it is given, and not used again")]
pub fn fenced<T: Debug + PartialEq>(answer: bursar::store::Fenced<T>, found: &Claim) {
    assert_eq!(answer, Ok(Entered::Fenced(Some(holder(found)))));
}

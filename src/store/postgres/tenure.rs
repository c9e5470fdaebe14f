//! The store under one claim: sessions of its own, every transaction through the fence, and their end.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::end::end_backends;
use super::lineage::Baseline;
use super::places::Places;
use super::refusals::{Refusal, note};
use super::sessions::{Purpose, Sessions};
use super::store::{PgStore, finish};
use super::tx::{FencedTx, Kind, READ_COMMITTED, begin, enter};
use super::within::{CONTROL, within};
use super::{
    calls, charge, execute, finish as finish_file, give_up, jobs, lineage, open_runs, payout_records, payouts, plan,
    receivers, recover, requests, settle, take_over, ticks,
};
use crate::domain::{Claim, ElectionName, JobName};
use crate::store::readable::Said;
use crate::store::{
    Admission, Call, CallRecord, Charge, Effect, Entered, Execution, Fenced, FinishOutcome, GiveUpOutcome, Heard,
    JobChange, JobChangeOutcome, JobsView, Lineage, OpenRun, PayoutJob, PayoutRecords, PayoutTake, PayoutsRecorded,
    PayoutsTaken, PendingRequest, PlanOutcome, PlanSource, Pulse, ReceiverAsk, ReceiverWay, Recovery, RequestState,
    SessionsEnded, SettleOutcome, StoreError, TakeOverOutcome, TenureLimits, TenureStore, TicksOutcome, TicksRecord,
    UnitPick,
};

/// The longest that one operation may take, in statements of the longest allowed: the server bounds each statement, this
/// bounds a way to the server that swallows answers.
const STATEMENTS_OF_AN_OPERATION: u32 = 12;

/// The fenced half of the store.
pub(super) struct PgTenure {
    claim: Claim,
    replica: String,
    deployment: Uuid,
    limits: TenureLimits,
    sessions: Arc<Sessions>,
    control: Arc<Sessions>,
    baseline: Arc<Baseline>,
    admission: Arc<dyn Admission>,
    /// Rows that cannot be read, as they were named.
    said: Said,
    /// Refusals that are being written down.
    notes: TaskTracker,
    ended: AtomicBool,
}

impl PgTenure {
    /// Opens the first session, and with it compares the store with the baseline.
    pub(super) async fn open(
        store: &PgStore,
        claim: &Claim,
        limits: TenureLimits,
        baseline: Lineage,
        admission: Arc<dyn Admission>,
    ) -> Result<Self, StoreError> {
        let deployment = store.deployment_id().await?;
        let replica = store.replica.clone();
        let way = store.way_for(claim.election.as_str());
        let baseline = Arc::new(Baseline::new(baseline));
        let (share, control) = (store.places.as_ref().map(Places::share), Arc::clone(&store.control));
        let purpose = Purpose::Tenure { limits, baseline: Arc::clone(&baseline), share, control };
        let sessions = Sessions::new(way, limits.connections, limits.acquire_timeout, purpose);
        if let Some(places) = &store.places {
            places.join(&sessions);
        }
        let first = sessions.acquire("tenure").await?;
        first.give_back();
        Ok(Self {
            claim: claim.clone(),
            replica,
            deployment,
            limits,
            sessions,
            control: Arc::clone(&store.control),
            baseline,
            admission,
            said: Said::default(),
            notes: TaskTracker::new(),
            ended: AtomicBool::new(false),
        })
    }

    /// Begins a transaction and enters the fence; before that, takes the gate of another election too, where one is named.
    ///
    /// # Errors
    /// [`StoreError::Ended`] once the tenure's end began, or nothing may begin any more; else those of the way to the database.
    async fn begin(
        &self,
        kind: Kind,
        operation: &'static str,
        beside: Option<&ElectionName>,
    ) -> Result<Entered<FencedTx>, StoreError> {
        if self.ended.load(Ordering::SeqCst) {
            return Err(StoreError::Ended { operation });
        }
        let admission = match kind {
            Kind::Begin => Some(self.admission.as_ref()),
            // What has begun ends by itself, and the fence covers it.
            Kind::Record => None,
        };
        let mut tx = begin(&self.sessions, &self.control, operation, READ_COMMITTED, admission).await?;
        if let Some(beside) = beside {
            tx = take_over::gate_first(tx, beside, self.limits.lock_timeout).await?;
        }
        let entered = enter(tx, &self.claim, kind, self.limits.lock_timeout).await?;
        if let Entered::Fenced(found) = &entered {
            let refusal =
                Refusal { claim: self.claim.clone(), found: *found, operation, replica: self.replica.clone() };
            self.notes.spawn(note(Arc::clone(&self.control), refusal));
        }
        Ok(entered)
    }

    /// The bound of what one operation does between the fence and COMMIT.
    fn bound(&self) -> Duration {
        (self.limits.statement_timeout + self.limits.idle_in_transaction_timeout)
            .saturating_mul(STATEMENTS_OF_AN_OPERATION)
    }
}

/// One operation: enters, works, commits or rolls back. What is not mine is answered as it is.
macro_rules! fenced {
    ($self:ident, $kind:expr, $operation:literal, $tx:ident => $work:expr) => {
        fenced!($self, $kind, None, $operation, $tx => $work)
    };
    ($self:ident, $kind:expr, $beside:expr, $operation:literal, $tx:ident => $work:expr) => {{
        let mut $tx = match $self.begin($kind, $operation, $beside).await? {
            Entered::Mine(tx) => tx,
            Entered::Fenced(found) => return Ok(Entered::Fenced(found)),
            Entered::Halted(halt) => return Ok(Entered::Halted(halt)),
        };
        let worked = within($operation, $self.bound(), $work).await;
        finish($tx, worked).await.map(Entered::Mine)
    }};
}

#[async_trait]
impl TenureStore for PgTenure {
    fn claim(&self) -> &Claim {
        &self.claim
    }

    fn deployment(&self) -> Uuid {
        self.deployment
    }

    async fn recover(&self) -> Fenced<Recovery> {
        fenced!(self, Kind::Record, "recover", tx => recover::recover(tx.conn(), &self.claim))
    }

    async fn give_up(&self, run: i64, after: i64, limit: u32) -> Fenced<GiveUpOutcome> {
        fenced!(self, Kind::Begin, "give_up", tx => give_up::give_up(tx.conn(), &self.claim, run, after, limit))
    }

    async fn pulse(&self) -> Fenced<Pulse> {
        fenced!(self, Kind::Begin, "pulse", tx => open_runs::pulse(tx.conn(), &self.claim))
    }

    async fn jobs(&self) -> Fenced<JobsView> {
        fenced!(self, Kind::Begin, "jobs", tx => jobs::jobs(tx.conn(), &self.claim, &self.said))
    }

    async fn change_job(&self, change: JobChange) -> Fenced<JobChangeOutcome> {
        fenced!(self, Kind::Begin, "change_job", tx => jobs::change_job(tx.conn(), &self.claim, &change))
    }

    async fn take_over_job(&self, job: &JobName, from: &ElectionName) -> Fenced<TakeOverOutcome> {
        let first = Some(from).filter(|from| take_over::comes_first(from, &self.claim));
        fenced!(self, Kind::Begin, first, "take_over_job", tx => take_over::take_over(tx.conn(), &self.claim, job, from))
    }

    async fn record_ticks(&self, record: TicksRecord) -> Fenced<TicksOutcome> {
        fenced!(self, Kind::Begin, "record_ticks", tx => ticks::record_ticks(tx.conn(), &self.claim, &record))
    }

    fn writers(&self) -> usize {
        // With fewer connections a second transaction would take the one that records and other work wait for.
        if self.limits.connections < 3 { 1 } else { 2 }
    }

    async fn record_many(&self, records: &[TicksRecord]) -> Fenced<Vec<TicksOutcome>> {
        fenced!(self, Kind::Begin, "record_ticks", tx => ticks::record_many(tx.conn(), &self.claim, records))
    }

    async fn recorded(&self, ticks: &[(i64, DateTime<Utc>)]) -> Fenced<BTreeSet<(i64, DateTime<Utc>)>> {
        fenced!(self, Kind::Begin, "recorded", tx => ticks::recorded(tx.conn(), ticks))
    }

    async fn open_runs(&self) -> Fenced<Vec<OpenRun>> {
        fenced!(self, Kind::Begin, "open_runs", tx => open_runs::open_runs(tx.conn(), &self.claim, &self.said))
    }

    async fn begin_work(&self, run: i64) -> Fenced<()> {
        fenced!(self, Kind::Begin, "begin_work", tx => open_runs::begin_work(tx.conn(), &self.claim, run))
    }

    async fn plan_page(
        &self,
        run: &OpenRun,
        source: &PlanSource,
        after: Option<&str>,
        limit: u32,
    ) -> Fenced<PlanOutcome> {
        fenced!(self, Kind::Begin, "plan_page", tx => plan::plan_page(tx.conn(), &self.claim, run, source, after, limit))
    }

    async fn settle(&self, run: &OpenRun, pick: UnitPick, effect: &Effect) -> Fenced<SettleOutcome> {
        fenced!(self, Kind::Begin, "settle", tx => settle::settle(tx.conn(), &self.claim, self.deployment, run, &pick, effect))
    }

    async fn charge(&self, run: i64, charges: &[Charge]) -> Fenced<u64> {
        fenced!(self, Kind::Record, "charge", tx => charge::charge(tx.conn(), &self.claim, run, charges))
    }

    async fn take_calls(&self, run: &OpenRun, limit: u32) -> Fenced<Vec<Call>> {
        fenced!(self, Kind::Begin, "take_calls", tx => calls::take_calls(tx.conn(), &self.claim, self.deployment, run, limit))
    }

    async fn record_calls(&self, run: i64, records: &[CallRecord]) -> Fenced<u64> {
        fenced!(self, Kind::Record, "record_calls", tx => calls::record_calls(tx.conn(), &self.claim, run, records))
    }

    async fn put_back(&self, run: i64, kept: &[(i64, u32)]) -> Fenced<u64> {
        fenced!(self, Kind::Record, "put_back", tx => calls::put_back(tx.conn(), &self.claim, run, kept))
    }

    async fn finish_run(&self, run: i64) -> Fenced<FinishOutcome> {
        fenced!(self, Kind::Begin, "finish_run", tx => finish_file::finish_run(tx.conn(), &self.claim, run))
    }

    async fn payout_jobs(&self) -> Fenced<Vec<PayoutJob>> {
        fenced!(self, Kind::Begin, "payout_jobs", tx => payouts::payout_jobs(tx.conn(), &self.claim, &self.said))
    }

    async fn take_payouts(&self, take: &PayoutTake) -> Fenced<PayoutsTaken> {
        fenced!(self, Kind::Begin, "take_payouts", tx => payouts::take_payouts(tx.conn(), &self.claim, take))
    }

    async fn record_payouts(&self, records: &PayoutRecords) -> Fenced<PayoutsRecorded> {
        fenced!(self, Kind::Record, "record_payouts", tx => payout_records::record_payouts(tx.conn(), &self.claim, records))
    }

    async fn put_back_payouts(&self, origin: &str, kept: &[(i64, u32)]) -> Fenced<u64> {
        fenced!(self, Kind::Record, "put_back_payouts", tx => payout_records::put_back_payouts(tx.conn(), &self.claim, origin, kept))
    }

    async fn receiver_way(&self, ask: &ReceiverAsk) -> Fenced<ReceiverWay> {
        fenced!(self, Kind::Begin, "receiver_way", tx => receivers::receiver_way(tx.conn(), ask))
    }

    async fn heard(&self, heard: &Heard) -> Fenced<bool> {
        fenced!(self, Kind::Record, "heard", tx => receivers::heard(tx.conn(), &self.claim, heard))
    }

    async fn requests(&self) -> Fenced<Vec<PendingRequest>> {
        fenced!(self, Kind::Begin, "requests", tx => requests::requests(tx.conn(), &self.claim, &self.said))
    }

    async fn execute(&self, request: Uuid, execution: Execution) -> Fenced<RequestState> {
        fenced!(self, Kind::Begin, "execute", tx => execute::execute(tx.conn(), &self.claim, request, &execution))
    }

    async fn lineage(&self) -> Fenced<Lineage> {
        fenced!(self, Kind::Record, "lineage", tx => lineage::checked(tx.conn(), &self.baseline))
    }

    async fn release(&self) -> Fenced<()> {
        fenced!(self, Kind::Record, "release", tx => recover::release(tx.conn(), &self.claim))
    }

    async fn end(&self, budget: Duration) -> SessionsEnded {
        self.ended.store(true, Ordering::SeqCst);
        let places = self.sessions.close();
        let backends = crate::mutant!("demotion.sessions-left", instead of self.sessions.backends() => Vec::new());
        self.notes.close();
        let budget = budget.min(CONTROL);
        let (ended, _noted) = tokio::join!(
            end_backends(&self.control, "end", &backends, budget),
            // Each is bounded by itself.
            tokio::time::timeout(budget, self.notes.wait())
        );
        drop(places);
        if ended.confirmed {
            for backend in backends {
                self.sessions.forget(backend);
            }
        }
        ended
    }
}

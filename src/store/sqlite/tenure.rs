//! The store under one claim: sessions of its own, every transaction through the fence, and their end.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::lineage::Baseline;
use super::refusals::{Refusal, note};
use super::sessions::{Purpose, Sessions};
use super::store::{SqliteStore, finish};
use super::tx::{FencedTx, Kind, begin_admitted, begin_immediate, enter, read};
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

/// The longest that one operation may take, in time-outs of a transaction: SQLite bounds what is computed, this bounds a disk
/// that does not answer and a hook that does not return.
const TIMEOUTS_OF_AN_OPERATION: u32 = 4;

/// The fenced half of the store.
pub(super) struct SqliteTenure {
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
}

/// Whether an operation writes.
#[derive(Debug, Clone, Copy)]
enum Access {
    /// One snapshot; waits for nobody.
    Reads,
    /// The write lock.
    Writes,
}

impl SqliteTenure {
    /// Opens the first session, and with it compares the store with the baseline.
    pub(super) async fn open(
        store: &SqliteStore,
        claim: &Claim,
        limits: TenureLimits,
        baseline: Lineage,
        admission: Arc<dyn Admission>,
    ) -> Result<Self, StoreError> {
        let deployment = store.deployment_id().await?;
        let baseline = Arc::new(Baseline::new(baseline));
        let purpose = Purpose::Tenure { limits, baseline: Arc::clone(&baseline) };
        let sessions = Sessions::new(Arc::clone(&store.file), limits.connections, limits.acquire_timeout, purpose);
        let first = sessions.acquire("tenure").await?;
        first.give_back();
        Ok(Self {
            claim: claim.clone(),
            replica: store.replica.clone(),
            deployment,
            limits,
            sessions,
            control: Arc::clone(&store.control),
            baseline,
            admission,
            said: Said::default(),
            notes: TaskTracker::new(),
        })
    }

    /// Begins a transaction and enters the fence.
    ///
    /// # Errors
    /// [`StoreError::Ended`] once the tenure's end began, or nothing may begin any more; else those of the file.
    async fn begin(
        &self,
        kind: Kind,
        access: Access,
        operation: &'static str,
    ) -> Result<Entered<FencedTx>, StoreError> {
        if self.sessions.is_closed() {
            return Err(StoreError::Ended { operation });
        }
        let tx = match (kind, access) {
            (Kind::Begin, Access::Reads) => begin_admitted(&self.sessions, operation, false, self.admission()).await?,
            (Kind::Begin, Access::Writes) => begin_admitted(&self.sessions, operation, true, self.admission()).await?,
            // What has begun ends by itself, and the fence covers it.
            (Kind::Record, Access::Reads) => read(&self.sessions, operation).await?,
            (Kind::Record, Access::Writes) => begin_immediate(&self.sessions, operation).await?,
        };
        let entered = enter(tx, &self.claim, kind).await?;
        if let Entered::Fenced(found) = &entered {
            let refusal =
                Refusal { claim: self.claim.clone(), found: *found, operation, replica: self.replica.clone() };
            self.notes.spawn(note(Arc::clone(&self.control), refusal));
        }
        Ok(entered)
    }

    fn admission(&self) -> &dyn Admission {
        self.admission.as_ref()
    }

    /// The bound of what one operation does between the fence and COMMIT.
    fn bound(&self) -> Duration {
        (self.limits.statement_timeout + self.limits.idle_in_transaction_timeout)
            .saturating_mul(TIMEOUTS_OF_AN_OPERATION)
    }
}

/// One operation: enters, works, commits or rolls back. What is not mine is answered as it is.
macro_rules! fenced {
    ($self:ident, $kind:expr, $operation:literal, $tx:ident => $work:expr) => {
        fenced!($self, $kind, Access::Writes, $operation, $tx => $work)
    };
    ($self:ident, $kind:expr, $access:expr, $operation:literal, $tx:ident => $work:expr) => {{
        let mut $tx = match $self.begin($kind, $access, $operation).await? {
            Entered::Mine(tx) => tx,
            Entered::Fenced(found) => return Ok(Entered::Fenced(found)),
            Entered::Halted(halt) => return Ok(Entered::Halted(halt)),
        };
        let worked = within($operation, $self.bound(), $work).await;
        finish($tx, worked).await.map(Entered::Mine)
    }};
}
#[async_trait]
impl TenureStore for SqliteTenure {
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
        fenced!(self, Kind::Begin, Access::Reads, "pulse", tx => open_runs::pulse(tx.conn(), &self.claim))
    }

    async fn jobs(&self) -> Fenced<JobsView> {
        fenced!(self, Kind::Begin, Access::Reads, "jobs", tx => jobs::jobs(tx.conn(), &self.claim, &self.said))
    }

    async fn change_job(&self, change: JobChange) -> Fenced<JobChangeOutcome> {
        fenced!(self, Kind::Begin, "change_job", tx => jobs::change_job(tx.conn(), &self.claim, &change))
    }

    async fn take_over_job(&self, job: &JobName, from: &ElectionName) -> Fenced<TakeOverOutcome> {
        fenced!(self, Kind::Begin, "take_over_job", tx => take_over::take_over(tx.conn(), &self.claim, job, from))
    }

    async fn record_ticks(&self, record: TicksRecord) -> Fenced<TicksOutcome> {
        fenced!(self, Kind::Begin, "record_ticks", tx => ticks::record_ticks(tx.conn(), &self.claim, &record))
    }

    async fn record_many(&self, records: &[TicksRecord]) -> Fenced<Vec<TicksOutcome>> {
        fenced!(self, Kind::Begin, "record_ticks", tx => ticks::record_many(tx.conn(), &self.claim, records))
    }

    async fn recorded(&self, ticks: &[(i64, DateTime<Utc>)]) -> Fenced<BTreeSet<(i64, DateTime<Utc>)>> {
        fenced!(self, Kind::Begin, Access::Reads, "recorded", tx => ticks::recorded(tx.conn(), ticks))
    }

    async fn open_runs(&self) -> Fenced<Vec<OpenRun>> {
        fenced!(self, Kind::Begin, Access::Reads, "open_runs", tx => open_runs::open_runs(tx.conn(), &self.claim, &self.said))
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
        fenced!(self, Kind::Begin, Access::Reads, "payout_jobs", tx => payouts::payout_jobs(tx.conn(), &self.claim, &self.said))
    }

    async fn take_payouts(&self, take: &PayoutTake) -> Fenced<PayoutsTaken> {
        fenced!(self, Kind::Begin, "take_payouts", tx => payouts::take_payouts(tx.conn(), &self.claim, take))
    }

    async fn record_payouts(&self, records: &PayoutRecords) -> Fenced<PayoutsRecorded> {
        fenced!(self, Kind::Record, "record_payouts", tx => payout_records::record_payouts(tx.conn(), &self.claim, records))
    }

    async fn put_back_payouts(&self, origin: &str, kept: &[(i64, u32)]) -> Fenced<u64> {
        fenced!(self, Kind::Record, "put_back_payouts", tx => payouts::put_back_payouts(tx.conn(), &self.claim, origin, kept))
    }

    async fn receiver_way(&self, ask: &ReceiverAsk) -> Fenced<ReceiverWay> {
        fenced!(self, Kind::Begin, "receiver_way", tx => receivers::receiver_way(tx.conn(), ask))
    }

    async fn heard(&self, heard: &Heard) -> Fenced<bool> {
        fenced!(self, Kind::Record, "heard", tx => receivers::heard(tx.conn(), &self.claim, heard))
    }

    async fn requests(&self) -> Fenced<Vec<PendingRequest>> {
        fenced!(self, Kind::Begin, Access::Reads, "requests", tx => requests::requests(tx.conn(), &self.claim, &self.said))
    }

    async fn execute(&self, request: Uuid, execution: Execution) -> Fenced<RequestState> {
        fenced!(self, Kind::Begin, "execute", tx => execute::execute(tx.conn(), &self.claim, request, &execution))
    }

    async fn lineage(&self) -> Fenced<Lineage> {
        fenced!(self, Kind::Record, Access::Reads, "lineage", tx => lineage::checked(tx.conn(), &self.baseline))
    }

    async fn release(&self) -> Fenced<()> {
        fenced!(self, Kind::Record, "release", tx => recover::release(tx.conn(), &self.claim))
    }

    async fn end(&self, budget: Duration) -> SessionsEnded {
        let lent = self.sessions.lent();
        self.sessions.close();
        self.notes.close();
        let budget = budget.min(CONTROL);
        let (confirmed, _noted) = tokio::join!(
            self.sessions.gone(budget),
            // Each is bounded by itself.
            tokio::time::timeout(budget, self.notes.wait())
        );
        SessionsEnded { terminated: u32::try_from(lent).unwrap_or(u32::MAX), confirmed }
    }
}

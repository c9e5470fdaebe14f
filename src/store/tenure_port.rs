//! The fenced half of the port: what a tenure does. One value per tenure; its connections belong to it and end with it.

use std::collections::BTreeSet;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::{
    Call, CallRecord, Charge, Effect, Execution, FenceHolder, FinishOutcome, GiveUpOutcome, Halt, Heard, JobChange,
    JobChangeOutcome, JobsView, Lineage, OpenRun, PayoutJob, PayoutRecords, PayoutTake, PayoutsRecorded, PayoutsTaken,
    PendingRequest, PlanOutcome, PlanSource, ReceiverAsk, ReceiverWay, Recovery, RequestState, SettleOutcome,
    StoreError, TakeOverOutcome, TicksOutcome, TicksRecord, UnitPick,
};
use crate::domain::{Claim, ElectionName, JobName};

/// The answer of the fence, with what was done behind it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Entered<T> {
    /// The claim is the one in force; what was asked for was done or answered.
    Mine(T),
    /// Another claim is in force: nothing was done, the refusal is on record, the tenure is over.
    Fenced(Option<FenceHolder>),
    /// The claim is in force and the election halted: nothing was done.
    Halted(Halt),
}

impl<T> Entered<T> {
    /// Changes what was done, not the answer.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Entered<U> {
        match self {
            Self::Mine(done) => Entered::Mine(f(done)),
            Self::Fenced(found) => Entered::Fenced(found),
            Self::Halted(halt) => Entered::Halted(halt),
        }
    }
}

/// What a fenced operation answers.
pub type Fenced<T> = Result<Entered<T>, StoreError>;

/// What a heartbeat of a tenure finds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pulse {
    /// The store's time.
    pub now: DateTime<Utc>,
    /// Requests that wait.
    pub requests: u64,
    /// Open runs.
    pub open_runs: u64,
    /// Jobs of the election that were not removed.
    pub jobs: u64,
}

/// How the end of a tenure's sessions went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionsEnded {
    /// Backends that had to be ended.
    pub terminated: u32,
    /// Whether the server confirmed within the budget that none is left. Where not, the next advance ends them.
    pub confirmed: bool,
}

/// What a store asks right before it begins something for a tenure: after every wait for a connection or a lock of its own,
/// before BEGIN, never inside a transaction.
#[async_trait]
pub trait Admission: Send + Sync {
    /// Answers at once where something may begin; waits while nothing may for now; `false` once nothing may any more.
    async fn admitted(&self) -> bool;
}

/// The store under one claim. Operations of kind *begin* are refused where the election is halted; those of kind
/// *record* are not, for the outcome of what had left before is still recorded. Those of kind *begin* ask their
/// [`Admission`] before they begin, and answer [`StoreError::Ended`] where it is refused; while they wait for it they hold
/// no connection that an operation of kind *record* could need.
///
/// Every operation is one transaction (READ COMMITTED on PostgreSQL), bounded by the tenure's time-outs; each may answer
/// any [`StoreError`], and after [`StoreError::Unknown`] may simply be called again: every one is safe to repeat.
#[async_trait]
pub trait TenureStore: Send + Sync {
    /// The claim that is presented.
    fn claim(&self) -> &Claim;

    /// The deployment: with the election, the scope that receivers compare terms in.
    fn deployment(&self) -> Uuid;

    /// *Record.* Promotion's first step: `sending` of lower terms into `unknown` or held; deaths of leaders counted, and runs that
    /// had too many of them given up. How many units those have makes no difference: [`Self::give_up`] is for them.
    async fn recover(&self) -> Fenced<Recovery>;

    /// *Begin.* The store's time and what waits.
    async fn pulse(&self) -> Fenced<Pulse>;

    /// *Begin.* The jobs of the election.
    async fn jobs(&self) -> Fenced<JobsView>;

    /// *Begin.* Brings one job row up to the schedule.
    async fn change_job(&self, change: JobChange) -> Fenced<JobChangeOutcome>;

    /// *Begin.* Takes a job over from another election, under the gates of both: from now on its ticks belong to this one. The
    /// definition in force is the same but for its election, how far it is evaluated stays, and so do its pauses. Triggers and
    /// backfills that wait for it come along; what it had open stays where it was opened. Repeated, it finds the job gone from
    /// there.
    async fn take_over_job(&self, job: &JobName, from: &ElectionName) -> Fenced<TakeOverOutcome>;

    /// *Begin.* Ticks, their runs and `evaluated_until`, together.
    async fn record_ticks(&self, record: TicksRecord) -> Fenced<TicksOutcome>;

    /// Transactions that it works on at the same time, where there is enough to do; at least one.
    fn writers(&self) -> usize {
        1
    }

    /// *Begin.* The same for several jobs, each of them once, in the order of the records. One transaction in the stores that a
    /// deployment has: of all or of none, apart from jobs that are not as they were
    /// read, or not due yet at the store's clock.
    async fn record_many(&self, records: &[TicksRecord]) -> Fenced<Vec<TicksOutcome>> {
        let mut outcomes = Vec::with_capacity(records.len());
        for record in records {
            match self.record_ticks(record.clone()).await? {
                Entered::Mine(outcome) => outcomes.push(outcome),
                Entered::Fenced(found) => return Ok(Entered::Fenced(found)),
                Entered::Halted(halt) => return Ok(Entered::Halted(halt)),
            }
        }
        Ok(Entered::Mine(outcomes))
    }

    /// *Begin.* Those of these ticks, each a job's row and a nominal time, that have an outcome on record.
    async fn recorded(&self, ticks: &[(i64, DateTime<Utc>)]) -> Fenced<BTreeSet<(i64, DateTime<Utc>)>>;

    /// *Begin.* One page, of up to `limit` units above `after`, of a run that is given up: its pending units are set aside where
    /// leaders died over it, and withdrawn where it could not be planned. Once none is pending, the run ends. A page may be the
    /// last that its tenure does: the next tenure begins with the lowest again, and finds what is left.
    async fn give_up(&self, run: i64, after: i64, limit: u32) -> Fenced<GiveUpOutcome>;

    /// *Begin.* Runs that are planning or open, oldest due first; with them those that a tick of one of these jobs opened in
    /// another election ([`OpenRun::elsewhere`]): the job's runs take turns with them.
    /// Of a job that has more than some hundreds open, those that are worked on, the oldest and the newest: it hides nobody else's.
    async fn open_runs(&self) -> Fenced<Vec<OpenRun>>;

    /// *Begin.* Notes that this term works on the run, so that a successor can count deaths.
    async fn begin_work(&self, run: i64) -> Fenced<()>;

    /// *Begin.* Writes one page of a run's units, those with a key above `after` in byte order; the last page opens it.
    async fn plan_page(
        &self,
        run: &OpenRun,
        source: &PlanSource,
        after: Option<&str>,
        limit: u32,
    ) -> Fenced<PlanOutcome>;

    /// *Begin.* One in-store batch: claim, effect, states, instructions and its `batch` row, together or not at all.
    async fn settle(&self, run: &OpenRun, pick: UnitPick, effect: &Effect) -> Fenced<SettleOutcome>;

    /// *Record.* Charges failed attempts. Answers how many were charged; units that are no longer as expected are left.
    async fn charge(&self, run: i64, charges: &[Charge]) -> Fenced<u64>;

    /// *Begin.* Takes up to `limit` units for an outside handler: their instructions are `sending` under this term.
    async fn take_calls(&self, run: &OpenRun, limit: u32) -> Fenced<Vec<Call>>;

    /// *Record.* What came of calls. Answers how many were recorded; tries that are no longer as expected are left.
    async fn record_calls(&self, run: i64, records: &[CallRecord]) -> Fenced<u64>;

    /// *Record.* Puts back every call of the run that stands `sending` under this claim and is not among `kept`
    /// (instruction, attempt): nobody makes it. Answers how many.
    ///
    /// For the caller whose [`Self::take_calls`] ended [`StoreError::Unknown`], before the next one; each comes back as of
    /// [`CallFate::NotSent`](super::CallFate::NotSent).
    async fn put_back(&self, run: i64, kept: &[(i64, u32)]) -> Fenced<u64>;

    /// *Begin.* Ends the run if none of its units is pending.
    async fn finish_run(&self, run: i64) -> Fenced<FinishOutcome>;

    /// *Begin.* Jobs with payouts of this election that are pending or unknown and not waiting for a release, with their
    /// definitions in force. One indexed look per job.
    async fn payout_jobs(&self) -> Fenced<Vec<PayoutJob>>;

    /// *Begin.* Takes payouts for one receiver that are due: on the wire under this term ([`PayoutsTaken`]), or only to be
    /// asked for. What may not leave any more is held instead, with its reason, in the same transaction. Nothing is taken
    /// for a receiver that is stopped but one payout per wait; none where only an operator ends the stop.
    async fn take_payouts(&self, take: &PayoutTake) -> Fenced<PayoutsTaken>;

    /// *Record.* What came of payouts, with the postings that follow, and what it says about their receiver. Tries that are
    /// no longer as expected are left.
    async fn record_payouts(&self, records: &PayoutRecords) -> Fenced<PayoutsRecorded>;

    /// *Record.* Puts back every payout that stands `sending` to this receiver under this claim and is not among `kept`
    /// (instruction, attempt): nobody sends it. Answers how many. For the caller whose [`Self::take_payouts`] ended
    /// [`StoreError::Unknown`], before the next one.
    async fn put_back_payouts(&self, origin: &str, kept: &[(i64, u32)]) -> Fenced<u64>;

    /// *Begin.* Whether calls may go to a receiver now. Where it is stopped and one may be tried, this is that one: the next is
    /// tried after a longer wait.
    async fn receiver_way(&self, ask: &ReceiverAsk) -> Fenced<ReceiverWay>;

    /// *Record.* What the answers to calls say about a receiver. Answers whether they stopped it until an operator resumes it.
    /// Repeated, refusals count again: it stops the sooner.
    async fn heard(&self, heard: &Heard) -> Fenced<bool>;

    /// *Begin.* Requests of operators, oldest first, a bounded page.
    async fn requests(&self) -> Fenced<Vec<PendingRequest>>;

    /// *Begin.* Executes one request; a second time it answers what the first made of it.
    async fn execute(&self, request: Uuid, execution: Execution) -> Fenced<RequestState>;

    /// *Record.* Where the store stands, for the coordinator's memory of it.
    async fn lineage(&self) -> Fenced<Lineage>;

    /// *Record.* A planned end: no run counts this tenure as a death.
    async fn release(&self) -> Fenced<()>;

    /// Closes the tenure's connections and ends their sessions on the server from another connection, within `budget`.
    /// Idempotent. Every later operation answers [`StoreError::Ended`].
    async fn end(&self, budget: Duration) -> SessionsEnded;
}

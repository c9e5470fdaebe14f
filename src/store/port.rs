//! The unfenced half of the port: health, the fence itself, operators' acts, and reading.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{
    Admission, ApprovalView, AuditReport, CallWord, DecideOutcome, Decision, FourEyesOutcome, HistoryView, HoldReport,
    ImportOutcome, ImportRecord, ImportView, JobCarries, Lineage, MerchantHold, NewImport, PauseOutcome, PayoutFilter,
    PayoutView, PreviewLine, Promotion, ReceiverView, ReleaseOutcome, ReportedPayout, RequestKind, RequestState,
    Resolution, ResolveOutcome, RevertOutcome, RunFilter, RunReport, RunSummary, RunView, StatusView, StoreError,
    StoreFigures, StoryFilter, TenureStore, TermStory, TransferAsked, UnitFilter, UnitHistory, UnitView,
    UsersStatement, WaitingRequest, Wishes, WithdrawOutcome,
};
use crate::domain::job::LedgerDefinition;
use crate::domain::{Claim, ElectionName, JobName, TenureId, Term};

/// Whose claim is in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FenceHolder {
    /// The highest term accepted.
    pub term: Term,
    /// The tenure that it was accepted from.
    pub tenure_id: TenureId,
}

/// Why and since when an election is halted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Halt {
    /// The reason given.
    pub reason: String,
    /// By the store's clock.
    pub since: DateTime<Utc>,
    /// Who: an operator, or `bursar` where the store was found to have forgotten.
    pub by: String,
}

/// The fence of one election. Term 0 where it was only halted before anybody led.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fence {
    /// Whose claim is in force.
    pub holder: FenceHolder,
    /// Set while halted.
    pub halt: Option<Halt>,
}

/// How advancing the fence went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AdvanceOutcome {
    /// The claim is in force (also where an earlier try had already done it).
    Accepted {
        /// Set while halted: recover, then wait for the resume.
        halt: Option<Halt>,
    },
    /// A claim at or above this term is in force: this leader lost.
    Lost(FenceHolder),
}

/// What a health check finds. Everything that keeps a replica from leading is an error of the check instead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// The store's time.
    pub now: DateTime<Utc>,
    /// Where it stands.
    pub lineage: Lineage,
}

/// Which coordinator a deployment's terms come from; a replica with another one refuses to start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoordinatorBinding {
    /// `etcd` or `database`.
    pub kind: String,
    /// The key prefix; empty for `database`.
    pub prefix: String,
}

/// How binding to a coordinator went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BindOutcome {
    /// Bound, now or before.
    Bound {
        /// The deployment's identity.
        deployment_id: Uuid,
    },
    /// The store belongs to another coordinator.
    Other(CoordinatorBinding),
}

/// Who acts, as far as the process knows; the database role is added by the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Actor {
    /// The operating system's user.
    pub user: String,
    /// The host.
    pub host: String,
}

/// Who stands behind a claim, kept in the history of terms.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leader {
    /// The replica.
    pub replica: String,
    /// Its host.
    pub host: String,
    /// Its version.
    pub version: String,
}

/// How a tenure uses the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TenureLimits {
    /// Connections, at least 1.
    pub connections: u32,
    /// The longest statement.
    pub statement_timeout: Duration,
    /// The longest wait for a lock; advancing the fence waits no longer either.
    pub lock_timeout: Duration,
    /// The longest a session may sit idle in a transaction.
    pub idle_in_transaction_timeout: Duration,
    /// The longest wait for a free connection.
    pub acquire_timeout: Duration,
}

/// What halting one election found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HaltReport {
    /// The election.
    pub election: ElectionName,
    /// Whether it was halted (or resumed) already.
    pub already: bool,
    /// Instructions that are on the wire.
    pub on_the_wire: u64,
    /// How long the exclusive lock was waited for, milliseconds.
    pub waited_ms: u64,
}

/// One refusal, as recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FenceReject {
    /// What was presented.
    pub presented: Claim,
    /// What is in force.
    pub found: Option<FenceHolder>,
    /// The operation refused.
    pub operation: String,
    /// The replica refused.
    pub replica: String,
    /// By the store's clock.
    pub at: DateTime<Utc>,
}

/// The store as replicas and commands use it outside of tenures.
#[async_trait]
pub trait Store: Send + Sync {
    /// Whether a replica could lead on this store: primary, writable, migrated, no transaction pooler in between, allowed
    /// to end its peers' sessions. Bounded by a second or two.
    async fn health(&self) -> Result<Health, StoreError>;

    /// The store's time.
    async fn now(&self) -> Result<DateTime<Utc>, StoreError>;

    /// Binds the deployment to its coordinator, once.
    async fn bind(&self, coordinator: &CoordinatorBinding) -> Result<BindOutcome, StoreError>;

    /// The fence of an election; `None` where nobody ever led.
    async fn fence(&self, election: &ElectionName) -> Result<Option<Fence>, StoreError>;

    /// Puts a claim in force, ending the sessions of lower terms that hold the fence. Waits at most `within`.
    async fn advance(&self, claim: &Claim, leader: &Leader, within: Duration) -> Result<AdvanceOutcome, StoreError>;

    /// Opens the fenced half under a claim. `baseline`: where the store stood; each new connection is compared with it.
    /// `admission` is asked before each transaction of kind *begin*.
    async fn tenure(
        &self,
        claim: &Claim,
        limits: TenureLimits,
        baseline: Lineage,
        admission: Arc<dyn Admission>,
    ) -> Result<Arc<dyn TenureStore>, StoreError>;

    /// Notes in the history of terms when this tenure first worked, by the store's clock. The first note stays.
    async fn note_work(&self, claim: &Claim, at: DateTime<Utc>) -> Result<(), StoreError>;

    /// Notes in the history of terms how this tenure ended, and when by the store's clock, where that is known: else now. The first
    /// note stays. What could not be noted is noted with a later health check.
    async fn note_end(&self, claim: &Claim, reason: &str, at: Option<DateTime<Utc>>) -> Result<(), StoreError>;

    /// Notes in the history of terms how this tenure came about and what it took over. The first note stays; one on a tenure
    /// that was never accepted is left.
    async fn note_promotion(&self, claim: &Claim, promotion: &Promotion) -> Result<(), StoreError>;

    /// The elections that the store knows, in the order of their names: of a fence, of a job that is not removed, of an open run.
    async fn elections(&self) -> Result<Vec<ElectionName>, StoreError>;

    /// Halts an election, also one that the store does not know yet; in force with the next transaction. Waits for those under way,
    /// a minute at most. Where bursar halts by itself (the actor's user is `bursar`) and an operator's halt stands already, its reason
    /// is added to that.
    async fn halt(&self, election: &ElectionName, reason: &str, actor: &Actor) -> Result<HaltReport, StoreError>;

    /// Resumes an election. What is there (lineage and fence) is written down with the act, as what the operator accepts.
    async fn resume(&self, election: &ElectionName, reason: &str, actor: &Actor) -> Result<HaltReport, StoreError>;

    /// Where the store stood when an operator last resumed the election, and when, by the store's clock; `None` where nobody
    /// did. A leader that finds another store than is remembered takes this for the baseline, where it fits what is there.
    async fn resumed_baseline(&self, election: &ElectionName) -> Result<Option<(Lineage, DateTime<Utc>)>, StoreError>;

    /// Files a request for the leader of the election that the job or run belongs to.
    ///
    /// # Errors
    /// [`StoreError::Broken`] names what does not exist.
    async fn request(&self, kind: &RequestKind, actor: &Actor, reason: Option<&str>) -> Result<Uuid, StoreError>;

    /// How a request went; `None` where there is no such request.
    async fn request_state(&self, request: Uuid) -> Result<Option<RequestState>, StoreError>;

    /// Requests that no leader has taken yet, of all elections, oldest first, at most
    /// [`WAITING_SHOWN`](super::WAITING_SHOWN).
    async fn waiting_requests(&self) -> Result<Vec<WaitingRequest>, StoreError>;

    /// Takes a request back where it still waits: it is either executed or withdrawn, never both. Recorded as an act.
    async fn withdraw_request(&self, request: Uuid, reason: &str, actor: &Actor)
    -> Result<WithdrawOutcome, StoreError>;

    /// Pauses a job, lastingly: its ticks are evaluated as ever and recorded as skipped, its open runs go on. A tick that has
    /// no outcome yet is skipped too. Recorded as an act under the gate of the job's election, as is the next.
    async fn pause_job(&self, job: &JobName, reason: &str, actor: &Actor) -> Result<PauseOutcome, StoreError>;

    /// Ends a job's pause. Ticks that fell due in it are not caught up, also where they have no outcome yet.
    async fn unpause_job(&self, job: &JobName, reason: &str, actor: &Actor) -> Result<PauseOutcome, StoreError>;

    /// What runs of a ledger job with these cutoffs (in order), one after the other, would take of the entries that are open now.
    /// By cutoff and currency; nothing is changed. What one of them would carry is not handed on to the next.
    async fn preview(
        &self,
        job: &JobName,
        ledger: &LedgerDefinition,
        cutoffs: &[DateTime<Utc>],
    ) -> Result<Vec<PreviewLine>, StoreError>;

    /// Imports a file: all or nothing, a no-op the second time.
    async fn import(&self, import: &NewImport, actor: &Actor) -> Result<ImportOutcome, StoreError>;

    /// Imports, newest first, at most `limit`.
    async fn imports(&self, limit: u32) -> Result<Vec<ImportRecord>, StoreError>;

    /// One import.
    async fn import_by_id(&self, import: i64) -> Result<Option<ImportView>, StoreError>;

    /// Takes an import back: open entries are withdrawn, settled ones get opposite adjustments.
    async fn revert_import(&self, import: i64, reason: &str, actor: &Actor) -> Result<RevertOutcome, StoreError>;

    /// Elections, jobs, open runs.
    async fn status(&self) -> Result<StatusView, StoreError>;

    /// Runs, newest due first.
    async fn runs(&self, filter: &RunFilter) -> Result<Vec<RunSummary>, StoreError>;

    /// One run.
    async fn run_by_id(&self, run: i64) -> Result<Option<RunView>, StoreError>;

    /// The reports of a job's runs with a tick in that second (one, unless a manual run has the same), oldest first. Each is
    /// of one snapshot.
    async fn report(&self, job: &JobName, tick: DateTime<Utc>) -> Result<Vec<RunReport>, StoreError>;

    /// Units, in the order of ids.
    async fn units(&self, filter: &UnitFilter) -> Result<Vec<UnitView>, StoreError>;

    /// One unit of a run with all that is kept of it, in one snapshot.
    async fn unit_history(&self, run: i64, key: &str) -> Result<Option<UnitHistory>, StoreError>;

    /// Payouts, in the order of ids.
    async fn payouts(&self, filter: &PayoutFilter) -> Result<Vec<PayoutView>, StoreError>;

    /// Takes an operator's word on what came of a payout, under its election's gate, with the postings that follow
    /// ([`resolve`](super::resolve)). Recorded as an act, and so are the six below.
    async fn resolve_payout(
        &self,
        key: &str,
        resolution: &Resolution,
        reason: &str,
        actor: &Actor,
    ) -> Result<ResolveOutcome, StoreError>;

    /// Takes an operator's word on what came of the call of a unit that is set aside, under its election's gate, with what the unit
    /// becomes by it ([`resolve_call`](super::resolve_call)).
    async fn resolve_call(
        &self,
        run: i64,
        unit: &str,
        word: &CallWord,
        reason: &str,
        actor: &Actor,
    ) -> Result<ResolveOutcome, StoreError>;

    /// Releases the payouts of a run that wait for it; with `keys` only those, and then also those held for their amount.
    async fn release_payouts(
        &self,
        run: i64,
        keys: &[String],
        reason: &str,
        actor: &Actor,
    ) -> Result<ReleaseOutcome, StoreError>;

    /// Switches two pairs of eyes on for resolving (payouts and calls), releasing and reverting: from then on those file a request instead.
    /// Their end is asked for, and waits too.
    ///
    /// # Errors
    /// [`StoreError::Unfit`] where there are no roles.
    async fn set_four_eyes(&self, on: bool, reason: &str, actor: &Actor) -> Result<FourEyesOutcome, StoreError>;

    /// Requests for a second pair of eyes, newest first; also those that are decided, or only this one.
    async fn approvals(&self, one: Option<i64>, decided: bool, limit: u32) -> Result<Vec<ApprovalView>, StoreError>;

    /// Approves a request, by another role than asked, and carries it out in the same transaction; or says no to it.
    async fn decide(
        &self,
        request: i64,
        decision: Decision,
        reason: Option<&str>,
        actor: &Actor,
    ) -> Result<DecideOutcome, StoreError>;

    /// Payouts that a bank statement is compared with: those with one of these keys or references, and those paid with a value
    /// date from the first day to the last; in the order of ids, each once, at most
    /// [`PAYOUTS_REPORTED`](super::PAYOUTS_REPORTED).
    async fn stated_payouts(
        &self,
        keys: &[String],
        references: &[String],
        days: (NaiveDate, NaiveDate),
    ) -> Result<Vec<ReportedPayout>, StoreError>;

    /// Receivers that are stopped, or refused the last of what they were sent.
    async fn receivers(&self) -> Result<Vec<ReceiverView>, StoreError>;

    /// Ends a receiver's stop. Answers whether there was one.
    async fn resume_receiver(&self, origin: &str, reason: &str, actor: &Actor) -> Result<bool, StoreError>;

    /// Puts a merchant on hold: no unit, and nothing pending is sent. Every gate is held shared for a moment.
    async fn hold_merchant(&self, merchant: &str, reason: &str, actor: &Actor) -> Result<HoldReport, StoreError>;

    /// Ends a merchant's hold; what was held for it is as it was before. Answers how many payouts that are; `None` where the
    /// merchant was not on hold.
    async fn release_merchant(&self, merchant: &str, reason: &str, actor: &Actor) -> Result<Option<u64>, StoreError>;

    /// Whether any entry of a merchant has ever come in. For a warning: it may have to look at every entry.
    async fn is_merchant_known(&self, merchant: &str) -> Result<bool, StoreError>;

    /// Merchants on hold.
    async fn merchant_holds(&self) -> Result<Vec<MerchantHold>, StoreError>;

    /// Jobs that have open carries, by name: what only they take.
    async fn carries(&self) -> Result<Vec<JobCarries>, StoreError>;

    /// What operators want of this replica now.
    async fn wishes(&self, replica: &str) -> Result<Wishes, StoreError>;

    /// Takes a replica out of leading, or lets it lead again; whether that changed anything. It need not be there: an id that
    /// comes back is kept out too.
    async fn cordon(&self, replica: &str, cordoned: bool, reason: &str, actor: &Actor) -> Result<bool, StoreError>;

    /// Asks the leader of `term` to hand over, to `to` or to any that may lead. A later wish takes the place of an earlier one.
    async fn ask_transfer(
        &self,
        election: &ElectionName,
        term: Term,
        to: Option<&str>,
        reason: &str,
        actor: &Actor,
    ) -> Result<TransferAsked, StoreError>;

    /// Terms, refusals, operators' acts, newest first, at most `limit` of each.
    async fn history(&self, limit: u32) -> Result<HistoryView, StoreError>;

    /// The stories of terms, newest first, in one snapshot.
    async fn stories(&self, filter: &StoryFilter) -> Result<Vec<TermStory>, StoreError>;

    /// Figures for metrics.
    async fn figures(&self, election: &ElectionName) -> Result<StoreFigures, StoreError>;

    /// Checks the store's contents against the guarantees, in one snapshot.
    async fn audit(&self) -> Result<AuditReport, StoreError>;

    /// Whether the store understands a statement of a user's, as its handler sends it; `Some`: what is wrong with it. Nothing is
    /// run and nothing changed.
    async fn understands(&self, statement: UsersStatement<'_>) -> Result<Option<String>, StoreError>;

    /// Applies what is missing of the schema. Answers (found, now).
    async fn migrate(&self) -> Result<(i64, i64), StoreError>;

    /// Closes the connections.
    async fn close(&self);
}

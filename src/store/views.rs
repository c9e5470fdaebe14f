//! What commands, the status page and reports read. Serialised as `--json`; money as text.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Cordon, CurrencySums, Fence, FenceReject};
use crate::domain::entry::NewEntry;
use crate::domain::run::{RunKind, RunState};
use crate::domain::unit::UnitState;
use crate::domain::{ElectionName, JobName};

/// A parsed file of entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewImport {
    /// The source; not `bursar`.
    pub source: String,
    /// The file's name, for the record.
    pub file_name: String,
    /// SHA-256 of its bytes, 64 hexadecimal digits.
    pub sha256: String,
    /// Its entries, with the line that each stands on.
    pub entries: Vec<(u64, NewEntry)>,
}

/// How an import went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImportOutcome {
    /// Some entries are new.
    Imported {
        /// The record.
        import: ImportRecord,
        /// Entries that were there already, unchanged.
        known: u64,
    },
    /// Every entry was there already, unchanged: nothing was written.
    NothingNew {
        /// The import of the same bytes, if there was one.
        same_file: Option<i64>,
        /// Entries found.
        known: u64,
    },
    /// The same id with other content: nothing was written.
    Conflicts {
        /// A bounded list.
        shown: Vec<ImportConflict>,
        /// How many there are.
        total: u64,
    },
}

/// The most conflicts that are shown.
pub const CONFLICTS_SHOWN: usize = 100;

/// One id with two contents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportConflict {
    /// Line in the file.
    pub line: u64,
    /// What the file says.
    pub offered: NewEntry,
    /// What the store has.
    pub found: NewEntry,
    /// The import that it came with.
    pub import: i64,
}

/// The record of an import.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportRecord {
    /// Identity.
    pub id: i64,
    /// The source.
    pub source: String,
    /// The file's name.
    pub file_name: String,
    /// SHA-256.
    pub sha256: String,
    /// Entries that it brought.
    pub rows: u64,
    /// Sums of amounts per currency, major units as text.
    pub sums: BTreeMap<String, String>,
    /// Who.
    pub by: String,
    /// When, by the store's clock.
    pub at: DateTime<Utc>,
    /// When it was taken back.
    pub reverted_at: Option<DateTime<Utc>>,
    /// Why it was taken back.
    pub revert_reason: Option<String>,
}

/// An import with what became of its entries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportView {
    /// The record.
    pub record: ImportRecord,
    /// Entries not yet settled.
    pub open: u64,
    /// Entries in a unit.
    pub settled: u64,
    /// Entries withdrawn.
    pub withdrawn: u64,
    /// Entries settled and taken back.
    pub reverted: u64,
}

/// How taking back went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub enum RevertOutcome {
    /// Done.
    Reverted {
        /// Open entries withdrawn.
        withdrawn: u64,
        /// Opposite adjustments written.
        adjusted: u64,
    },
    /// It was taken back before.
    Already {
        /// When.
        at: DateTime<Utc>,
    },
    /// There is no such import.
    NotFound,
    /// It waits for another role.
    Waits {
        /// The request.
        request: i64,
    },
}

/// What `status` shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusView {
    /// The store's time.
    pub now: DateTime<Utc>,
    /// The deployment.
    pub deployment_id: Option<Uuid>,
    /// Elections.
    pub elections: Vec<ElectionStatus>,
    /// Jobs.
    pub jobs: Vec<JobStatus>,
    /// Runs that are planning or open, and the last ended ones.
    pub runs: Vec<RunSummary>,
    /// Replicas that operators keep from leading, by their ids.
    pub cordons: Vec<Cordon>,
    /// Fencing rejects on record.
    pub fencing_rejects: u64,
}

/// One election.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ElectionStatus {
    /// Its name.
    pub election: ElectionName,
    /// Its fence.
    pub fence: Fence,
    /// The replica that the fence was accepted from.
    pub leader: Option<String>,
    /// Since when, by the store's clock.
    pub accepted_at: Option<DateTime<Utc>>,
    /// Whether that tenure is known to have ended.
    pub ended: Option<String>,
}

/// One job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobStatus {
    /// Its name.
    pub job: JobName,
    /// Its election.
    pub election: ElectionName,
    /// Its handler.
    pub handler: String,
    /// Its definition's fingerprint.
    pub fingerprint: String,
    /// Evaluated up to this due time.
    pub evaluated_until: DateTime<Utc>,
    /// The newest tick on record.
    pub last_tick: Option<DateTime<Utc>>,
    /// Its run's state.
    pub last_state: Option<RunState>,
    /// Why it is paused, where it is.
    pub paused: Option<String>,
    /// The definition, so that a reader can compute the next tick.
    pub definition: serde_json::Value,
}

/// Which runs are listed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// Of this job.
    pub job: Option<JobName>,
    /// In this state.
    pub state: Option<RunState>,
    /// Below this id.
    pub below: Option<i64>,
    /// At most, 1 to 10,000.
    pub limit: u32,
}

/// One line of a list of runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSummary {
    /// Identity.
    pub id: i64,
    /// Its job.
    pub job: JobName,
    /// Its election.
    pub election: ElectionName,
    /// Scheduled or manual.
    pub kind: RunKind,
    /// Nominal.
    pub tick: DateTime<Utc>,
    /// After rolls.
    pub due_at: DateTime<Utc>,
    /// Its state.
    pub state: RunState,
    /// Why, where it had no work.
    pub why: Option<String>,
    /// Whether it is past its deadline and open.
    pub overdue: bool,
    /// Opened so long after its due time, milliseconds.
    pub lateness_ms: i64,
    /// The term that opened it.
    pub opened_term: i64,
    /// When it was opened.
    pub opened_at: DateTime<Utc>,
    /// When it ended.
    pub finished_at: Option<DateTime<Utc>>,
    /// Units by state.
    pub units: UnitCounts,
}

/// Units by state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitCounts {
    /// All of them.
    pub total: u64,
    /// Pending.
    pub pending: u64,
    /// Settled.
    pub settled: u64,
    /// Carried.
    pub carried: u64,
    /// Empty.
    pub empty: u64,
    /// Set aside.
    pub set_aside: u64,
}

/// One run with its batches and sums.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunView {
    /// The line of the list.
    pub summary: RunSummary,
    /// Its cutoff.
    pub cutoff_at: DateTime<Utc>,
    /// Its value date.
    pub value_date: NaiveDate,
    /// The fingerprint of the definition that it was opened under.
    pub fingerprint: String,
    /// The fingerprint of the calendar in it, where it has one.
    pub calendar_fingerprint: Option<String>,
    /// The request that it came from.
    pub request_id: Option<Uuid>,
    /// The term and count of batches that worked on it.
    pub batches: Vec<(i64, u64)>,
    /// Instructions written, by currency, major units as text.
    pub paid_out: BTreeMap<String, String>,
    /// Leaders that died over it without one of its units ending.
    pub deaths: u32,
}

/// Which units are listed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnitFilter {
    /// Of this run.
    pub run: Option<i64>,
    /// In this state.
    pub state: Option<UnitState>,
    /// With this key.
    pub key: Option<String>,
    /// Above this id.
    pub above: Option<i64>,
    /// At most, 1 to 10,000.
    pub limit: u32,
}

/// One unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitView {
    /// Identity.
    pub id: i64,
    /// Its run.
    pub run: i64,
    /// Its key.
    pub key: String,
    /// Its state.
    pub state: UnitState,
    /// Attempts charged.
    pub attempts: u32,
    /// Not before.
    pub next_attempt_at: Option<DateTime<Utc>>,
    /// The last error.
    pub last_error: Option<String>,
    /// The term that ended it.
    pub term: Option<i64>,
    /// Its net, major units as text.
    pub net: Option<String>,
    /// When it ended.
    pub ended_at: Option<DateTime<Utc>>,
    /// Its instructions.
    pub instructions: Vec<InstructionView>,
}

/// One instruction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InstructionView {
    /// The idempotency key.
    pub key: String,
    /// `payout` or `call`.
    pub kind: String,
    /// Its state.
    pub state: String,
    /// Why it is held.
    pub reason: Option<String>,
    /// Major units as text.
    pub amount: Option<String>,
    /// ISO 4217.
    pub currency: Option<String>,
    /// Tries.
    pub attempts: u32,
    /// Whether any try's outcome was unknown.
    pub in_doubt: bool,
    /// The term that wrote it.
    pub term: i64,
}

/// What `history` shows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryView {
    /// Terms, newest first.
    pub terms: Vec<TermView>,
    /// Refusals, newest first.
    pub rejects: Vec<FenceReject>,
    /// Operators' acts, newest first.
    pub acts: Vec<ActView>,
}

/// One accepted term.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TermView {
    /// The election.
    pub election: ElectionName,
    /// The term.
    pub term: i64,
    /// The tenure.
    pub tenure_id: Uuid,
    /// The replica.
    pub replica: String,
    /// Its host.
    pub host: String,
    /// Its version.
    pub version: String,
    /// When the store accepted it.
    pub accepted_at: DateTime<Utc>,
    /// When it first worked.
    pub worked_at: Option<DateTime<Utc>>,
    /// When it was noted to have ended.
    pub ended_at: Option<DateTime<Utc>>,
    /// Why it ended.
    pub end_reason: Option<String>,
}

/// One act of an operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActView {
    /// When, by the store's clock.
    pub at: DateTime<Utc>,
    /// What.
    pub action: String,
    /// On what.
    pub target: String,
    /// Why.
    pub reason: Option<String>,
    /// Operating system user and host.
    pub by: String,
    /// Database role.
    pub role: String,
    /// The term found, where an election was acted on.
    pub term: Option<i64>,
}

/// The audit's verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditReport {
    /// The store's time of the snapshot.
    pub at: DateTime<Utc>,
    /// One entry per check, also where nothing was found.
    pub checks: Vec<AuditCheck>,
    /// Open money per currency, major units as text, for a first look.
    pub open: BTreeMap<String, String>,
}

impl AuditReport {
    /// Whether every check holds.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.checks.iter().all(|check| check.violations == 0)
    }
}

/// One check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditCheck {
    /// The guarantee (`S1` to `S6`, or `money`).
    pub guarantee: String,
    /// A name for machines.
    pub name: String,
    /// A sentence for people.
    pub meaning: String,
    /// Violations found.
    pub violations: u64,
    /// A bounded list of them.
    pub examples: Vec<String>,
    /// What could not be proven (a term without a snapshot), if anything.
    pub not_proven: Option<String>,
}

/// The most examples of one violation.
pub const EXAMPLES_SHOWN: i64 = 20;

/// Sums of a parsed file.
#[must_use]
pub fn sums_of(entries: &[(u64, NewEntry)]) -> Option<CurrencySums> {
    let mut sums = CurrencySums::new();
    for (_, entry) in entries {
        let sum = sums.entry(entry.currency).or_insert(0);
        *sum = sum.checked_add(entry.amount)?;
    }
    Some(sums)
}

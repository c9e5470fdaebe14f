//! What the store holds: the rows of the other stores' tables, as values. Times are the injected clock's; `xact` is the count of
//! commits at which a row was written, the proof of fencing.

use chrono::{DateTime, NaiveDate, Utc};
use uuid::Uuid;

use crate::domain::entry::NewEntry;
use crate::domain::instruction::{InstructionKind, InstructionState};
use crate::domain::job::JobDefinition;
use crate::domain::money::Currency;
use crate::domain::netting::Posting;
use crate::domain::pause::PastPause;
use crate::domain::run::{RunKind, RunState};
use crate::domain::unit::UnitState;
use crate::domain::{ElectionName, JobName};
use crate::store::{
    ActView, ApprovalView, FenceHolder, Halt, ImportRecord, Lineage, PauseView, Promotion, RequestKind, RequestState,
    TermView, UnitTry,
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FenceRow {
    pub(super) holder: FenceHolder,
    pub(super) halt: Option<Halt>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TermRow {
    pub(super) view: TermView,
    /// How it came about, and when it was won by this clock.
    pub(super) promotion: Option<(Promotion, DateTime<Utc>)>,
    /// Commits before the acceptance: all that lower terms wrote is at or below it.
    pub(super) snapshot: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ActRow {
    pub(super) view: ActView,
    pub(super) election: Option<ElectionName>,
    /// Whether it found what it wanted done already.
    pub(super) already: bool,
    /// What a resume accepted.
    pub(super) baseline: Option<Lineage>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Job {
    pub(super) id: i64,
    pub(super) election: ElectionName,
    pub(super) definition: JobDefinition,
    pub(super) fingerprint: String,
    pub(super) evaluated_until: DateTime<Utc>,
    pub(super) paused: Option<PauseView>,
    pub(super) pauses: Vec<PastPause>,
    pub(super) removed_at: Option<DateTime<Utc>>,
    pub(super) term: i64,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Run {
    pub(super) id: i64,
    pub(super) job_id: i64,
    pub(super) job: JobName,
    pub(super) election: ElectionName,
    pub(super) kind: RunKind,
    pub(super) request_id: Option<Uuid>,
    pub(super) tick: DateTime<Utc>,
    pub(super) due_at: DateTime<Utc>,
    pub(super) cutoff_at: DateTime<Utc>,
    pub(super) value_date: NaiveDate,
    pub(super) definition: JobDefinition,
    pub(super) fingerprint: String,
    pub(super) state: RunState,
    pub(super) why: Option<String>,
    pub(super) caught_up: bool,
    pub(super) deadline_at: Option<DateTime<Utc>>,
    pub(super) opened_term: i64,
    pub(super) opened_at: DateTime<Utc>,
    pub(super) finished_at: Option<DateTime<Utc>>,
    /// The term that works on it now, and the deaths of such terms without progress.
    pub(super) worked_term: Option<i64>,
    pub(super) deaths: u32,
    /// Set aside while its units were still being written: a retry plans on.
    pub(super) was_planning: bool,
    pub(super) xact: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Batch {
    pub(super) id: i64,
    pub(super) run_id: i64,
    pub(super) election: ElectionName,
    pub(super) term: i64,
    pub(super) settled: u64,
    pub(super) carried: u64,
    pub(super) empty: u64,
    pub(super) set_aside: u64,
    pub(super) instructions: u64,
    pub(super) committed_at: DateTime<Utc>,
    pub(super) xact: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unit {
    pub(super) id: i64,
    pub(super) run_id: i64,
    pub(super) election: ElectionName,
    pub(super) key: String,
    /// Of a ledger unit.
    pub(super) ledger: Option<(Currency, String)>,
    pub(super) state: UnitState,
    pub(super) attempts: u32,
    pub(super) next_attempt_at: Option<DateTime<Utc>>,
    pub(super) last_error: Option<String>,
    pub(super) generation: u32,
    pub(super) net: Option<i64>,
    pub(super) batch_id: Option<i64>,
    pub(super) term: Option<i64>,
    pub(super) xact: Option<u64>,
    pub(super) ended_at: Option<DateTime<Utc>>,
}

impl Unit {
    /// Ends the unit, under a term.
    pub(super) fn end(&mut self, state: UnitState, batch: Option<i64>, term: i64, xact: u64, now: DateTime<Utc>) {
        self.state = state;
        self.batch_id = batch;
        self.term = Some(term);
        self.xact = Some(xact);
        self.next_attempt_at = None;
        self.ended_at = Some(now);
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) id: i64,
    pub(super) source: String,
    pub(super) new: NewEntry,
    /// None for what bursar writes itself.
    pub(super) import_id: Option<i64>,
    /// The job of a carry, or of the opposite of what it settled: only that job takes it.
    pub(super) job_id: Option<i64>,
    /// Set once and for ever.
    pub(super) unit_id: Option<i64>,
    pub(super) withdrawn_at: Option<DateTime<Utc>>,
    pub(super) reverted_at: Option<DateTime<Utc>>,
}

impl Entry {
    /// Neither in a unit nor withdrawn.
    pub(super) const fn is_open(&self) -> bool {
        self.unit_id.is_none() && self.withdrawn_at.is_none()
    }

    /// Its id is taken.
    pub(super) const fn stands(&self) -> bool {
        self.withdrawn_at.is_none() && self.reverted_at.is_none()
    }
}

/// What a journal is of: the settling of a unit, or the end of its payout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum JournalKind {
    Settle,
    Paid,
    Rejected,
    Returned,
}

impl JournalKind {
    /// The name as the other stores have it.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Settle => "settle",
            Self::Paid => "paid",
            Self::Rejected => "rejected",
            Self::Returned => "returned",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Journal {
    pub(super) unit_id: i64,
    pub(super) generation: u32,
    pub(super) kind: JournalKind,
    pub(super) election: ElectionName,
    pub(super) term: i64,
    pub(super) currency: Currency,
    pub(super) postings: Vec<Posting>,
    pub(super) xact: u64,
}

/// Whether a payout waits for an operator's release, or had it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Released {
    Auto,
    Waiting,
    ByHand,
}

impl Released {
    /// The name as the other stores have it.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Waiting => "waiting",
            Self::ByHand => "released",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "a row, with the columns that the other stores have")]
pub(super) struct Instruction {
    pub(super) id: i64,
    pub(super) unit_id: i64,
    pub(super) run_id: i64,
    pub(super) job_id: i64,
    pub(super) election: ElectionName,
    pub(super) kind: InstructionKind,
    pub(super) generation: u32,
    pub(super) key: String,
    /// Of a payout: to whom and how much.
    pub(super) payout: Option<(String, Currency, i64)>,
    pub(super) body: Vec<u8>,
    pub(super) value_date: NaiveDate,
    pub(super) idempotent: bool,
    /// Whether the receiver can be asked what became of the key.
    pub(super) looks_up: bool,
    pub(super) state: InstructionState,
    pub(super) reason: Option<&'static str>,
    pub(super) release: Released,
    /// Tries, also those of which no byte left.
    pub(super) attempts: u32,
    /// Once any try's outcome was unknown, for good.
    pub(super) in_doubt: bool,
    /// The first try that was not proved undone, and when the receiver forgets the key.
    pub(super) first_sent_at: Option<DateTime<Utc>>,
    pub(super) key_valid_until: Option<DateTime<Utc>>,
    pub(super) next_attempt_at: Option<DateTime<Utc>>,
    /// The receiver that it was last handed to, and what that, or a person, calls it.
    pub(super) receiver: Option<String>,
    pub(super) reference: Option<String>,
    /// The address that it was last handed to, whole.
    pub(super) receiver_url: Option<String>,
    /// A person said that nobody took it from the store.
    pub(super) cleared: bool,
    /// The bank's name for the return of what was paid.
    pub(super) return_reference: Option<String>,
    /// Whether its end is a person's word.
    pub(super) resolved: bool,
    pub(super) last_error: Option<String>,
    /// The term that wrote it, and the one that sends it.
    pub(super) term: i64,
    pub(super) sending_term: Option<i64>,
    pub(super) created_at: DateTime<Utc>,
    pub(super) final_at: Option<DateTime<Utc>>,
    pub(super) xact: u64,
    pub(super) tries: Vec<UnitTry>,
}

/// What is on record of a receiver; it belongs to no election.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Receiver {
    pub(super) stop: Option<Stop>,
    /// In a row.
    pub(super) refusals: u32,
    /// The term that last noted something.
    pub(super) term: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stop {
    pub(super) since: DateTime<Utc>,
    pub(super) reason: &'static str,
    pub(super) detail: String,
    /// Only an operator ends it.
    pub(super) needs_resume: bool,
    /// Otherwise one payout is tried then.
    pub(super) next_probe_at: DateTime<Utc>,
    pub(super) probes: u32,
}

/// A merchant on hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hold {
    pub(super) reason: String,
    pub(super) held_at: DateTime<Utc>,
    pub(super) by: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) id: Uuid,
    pub(super) election: ElectionName,
    pub(super) kind: RequestKind,
    pub(super) target: String,
    pub(super) reason: Option<String>,
    pub(super) by: String,
    pub(super) at: DateTime<Utc>,
    pub(super) result: RequestState,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Approval {
    pub(super) view: ApprovalView,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Import {
    pub(super) record: ImportRecord,
}

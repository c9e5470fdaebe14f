//! What a tenure hands to the store and gets from it: jobs, ticks, runs. Units and calls: `batches`; requests: `requests`.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::domain::JobName;
use crate::domain::job::{JobDefinition, LedgerDefinition};
use crate::domain::pause::PastPause;
use crate::domain::run::{RunKind, RunState};
use crate::store::Halt;

/// A job's row: the definition in force and how far its ticks were evaluated.
#[derive(Debug, Clone, PartialEq)]
pub struct JobRow {
    /// Identity.
    pub id: i64,
    /// The whole definition in force.
    pub definition: JobDefinition,
    /// Its fingerprint.
    pub fingerprint: String,
    /// A due time: every tick due up to it has an outcome on record.
    pub evaluated_until: DateTime<Utc>,
    /// Why it is paused, where it is.
    pub paused: Option<String>,
    /// Pauses that have ended and that ticks without an outcome may have fallen into, oldest first.
    pub pauses: Vec<PastPause>,
}

/// The jobs of an election as the store has them, and the store's time.
#[derive(Debug, Clone, PartialEq)]
pub struct JobsView {
    /// The store's time.
    pub now: DateTime<Utc>,
    /// Jobs that were not removed.
    pub jobs: Vec<JobRow>,
    /// Names of jobs whose rows this release cannot read: they are left as they are.
    pub unreadable: Vec<String>,
}

/// A definition that becomes the one in force, with what the old one owed.
#[derive(Debug, Clone, PartialEq)]
pub struct JobChange {
    /// The new definition; `None` removes the job.
    pub definition: Option<JobDefinition>,
    /// The name, also where it is removed.
    pub name: JobName,
    /// The row as it was read; `None` where there was none (new, or removed before). A new job starts at the store's now.
    pub expected: Option<JobRow>,
    /// Ticks of the old definition up to `evaluated_until`, with their outcomes.
    pub settled: Vec<TickRecord>,
    /// How far the old one is now evaluated; ignored for a new job.
    pub evaluated_until: DateTime<Utc>,
}

impl JobChange {
    /// The latest time that it takes for past: that of a tick it settles, or of the mark where that goes forward. A mark that
    /// stays may lie ahead of a clock that was stepped back. `None`: it takes none for past.
    #[must_use]
    pub fn reaches(&self) -> Option<DateTime<Utc>> {
        let mark = self.expected.as_ref().filter(|row| row.evaluated_until != self.evaluated_until);
        self.settled.iter().map(|tick| tick.due_at).chain(mark.map(|_| self.evaluated_until)).max()
    }
}

/// How a job change went.
#[derive(Debug, Clone, PartialEq)]
pub enum JobChangeOutcome {
    /// In force (the row as it is now), or removed (`None`).
    Changed(Option<Box<JobRow>>),
    /// The row was not as expected: read again.
    Moved,
    /// The store's clock has not reached what the change settles: it was stepped back, and nothing is recorded before its time.
    NotYet {
        /// The store's time.
        now: DateTime<Utc>,
    },
    /// The job belongs to another election; [`TenureStore::take_over_job`](super::TenureStore::take_over_job) moves it.
    OtherElection(String),
}

/// How taking a job over from another election went.
#[derive(Debug, Clone, PartialEq)]
pub enum TakeOverOutcome {
    /// The row as it is now: of the taker's election, and but for that as it was.
    Taken(Box<JobRow>),
    /// The job is not, or no longer, in the election that it was to come from: read again.
    NotThere,
    /// The election that it was to come from is halted: nothing begins there or is taken from it until that is resumed.
    Halted(Halt),
}

/// What becomes of one tick.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TickFate {
    /// A run is opened.
    Open {
        /// Whether it is caught up, past its grace.
        caught_up: bool,
    },
    /// Recorded without work.
    Skipped(String),
    /// Recorded as taken together with another.
    Coalesced(String),
    /// Recorded as too old.
    Missed(String),
}

impl TickFate {
    /// The state of the run row.
    #[must_use]
    pub const fn state(&self) -> RunState {
        match self {
            Self::Open { .. } => RunState::Planning,
            Self::Skipped(_) => RunState::Skipped,
            Self::Coalesced(_) => RunState::Coalesced,
            Self::Missed(_) => RunState::Missed,
        }
    }

    /// The label in `bursar_ticks_total`.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Open { caught_up: false } => "run",
            Self::Open { caught_up: true } => "caught_up",
            Self::Skipped(_) => "skipped",
            Self::Coalesced(_) => "coalesced",
            Self::Missed(_) => "missed",
        }
    }

    /// Why a tick has no work.
    #[must_use]
    pub fn why(&self) -> Option<&str> {
        match self {
            Self::Open { .. } => None,
            Self::Skipped(why) | Self::Coalesced(why) | Self::Missed(why) => Some(why),
        }
    }

    /// Whether it is opened past its grace.
    #[must_use]
    pub const fn is_caught_up(&self) -> bool {
        match self {
            Self::Open { caught_up } => *caught_up,
            Self::Skipped(_) | Self::Coalesced(_) | Self::Missed(_) => false,
        }
    }
}

/// One tick with its outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TickRecord {
    /// Nominal, its identity.
    pub tick: DateTime<Utc>,
    /// After rolls.
    pub due_at: DateTime<Utc>,
    /// Entries available before it are in.
    pub cutoff_at: DateTime<Utc>,
    /// From the due time, in the job's zone.
    pub value_date: NaiveDate,
    /// What becomes of it.
    pub fate: TickFate,
}

/// Ticks of one job, recorded together with how far they bring it.
#[derive(Debug, Clone, PartialEq)]
pub struct TicksRecord {
    /// The row as it was read; its `evaluated_until` and fingerprint are compared.
    pub job: JobRow,
    /// The new `evaluated_until`; not after the store's now.
    pub evaluated_until: DateTime<Utc>,
    /// The ticks due in between, in order.
    pub ticks: Vec<TickRecord>,
}

/// How recording ticks went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TicksOutcome {
    /// Recorded; ticks that already had a run are counted, not doubled.
    Recorded {
        /// Runs opened: tick and lateness at the store's clock.
        opened: Vec<(DateTime<Utc>, Duration)>,
        /// Ticks that already had a run.
        duplicates: u32,
    },
    /// `evaluated_until` or the definition is another by now, or somebody holds the row: read again.
    Moved,
    /// The store's clock has not reached it.
    NotYet {
        /// The store's time.
        now: DateTime<Utc>,
    },
}

/// A run that still has work.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenRun {
    /// Identity.
    pub id: i64,
    /// Its job.
    pub job_id: i64,
    /// The definition that it was opened under.
    pub definition: JobDefinition,
    /// Scheduled or manual.
    pub kind: RunKind,
    /// The operator's request of a manual run.
    pub request_id: Option<Uuid>,
    /// Nominal.
    pub tick: DateTime<Utc>,
    /// After rolls.
    pub due_at: DateTime<Utc>,
    /// Entries available before it are in.
    pub cutoff_at: DateTime<Utc>,
    /// The day on which its money counts.
    pub value_date: NaiveDate,
    /// `Planning` or `Open`.
    pub state: RunState,
    /// Whether it is caught up.
    pub caught_up: bool,
    /// When it was opened, by the store's clock.
    pub opened_at: DateTime<Utc>,
    /// Whether another election opened it, before its job moved here: it is worked on there, and here it only stands in the way.
    pub elsewhere: bool,
    /// Why it is given up, where it is: nothing of it is claimed any more, and [`TenureStore::give_up`](super::TenureStore::give_up)
    /// brings it to its end.
    pub given_up: Option<String>,
}

/// Where the units of a run come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlanSource {
    /// The (merchant, currency) pairs with open entries available before the run's cutoff.
    Ledger(LedgerDefinition),
    /// Given keys, in byte order.
    Keys(Vec<String>),
    /// A query of the user's: columns `key` (text, unique, not null) and `payload` (JSON, or null), paged by key in byte
    /// order. Keys that the same job has pending or set aside in another run are left out: a retry may settle them there.
    Query(String),
}

/// The longest key of a unit, in bytes.
pub const MOST_KEY: usize = 512;
/// The longest payload of a unit, in bytes of its text.
pub const MOST_PAYLOAD: usize = 64 * 1024;

/// How planning one page went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlanOutcome {
    /// Units are in; `next` is where to go on, `None` where planning is complete and the run open.
    Planned {
        /// Units inserted by this page.
        units: u64,
        /// The last key of the page.
        next: Option<String>,
    },
    /// The run is not being planned.
    NotPlanning(RunState),
    /// The user's query failed, or gave units that cannot be told apart: the run is given up with the error. Once
    /// [`TenureStore::give_up`](super::TenureStore::give_up) has ended it, it has no units, is set aside, and is planned again when
    /// it is retried.
    SetAside {
        /// For a person.
        error: String,
    },
}

/// How the end of a run was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FinishOutcome {
    /// It ended now.
    Finished(RunState),
    /// Units are pending.
    Pending {
        /// How many.
        units: u64,
        /// How many of them were never tried.
        fresh: u64,
        /// Until the first wait is over; `None` where none waits.
        next_in: Option<Duration>,
    },
    /// It is not open.
    NotOpen(RunState),
}

/// What came of a page of a run that is given up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GiveUpOutcome {
    /// Units are left, those after this one first.
    Going {
        /// The cursor of the next page.
        after: i64,
    },
    /// Nothing of it was pending any more: it ended now.
    Ended(RunState),
    /// It is not given up, or has ended before.
    NotGivenUp(RunState),
}

/// What a promotion found of the terms before it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Instructions of lower terms turned from `sending` into `unknown` (idempotent handlers) or held.
    pub calls_unknown: u64,
    /// Runs that are given up from now on, because their leaders died three times: run ids.
    pub runs_set_aside: Vec<i64>,
    /// Open runs that a lower term was working on.
    pub runs_taken_over: u64,
}

/// The deaths of leaders, without one of its units ending, after which a run is set aside.
pub const DEATHS_BEFORE_SET_ASIDE: u32 = 3;

/// Why a run whose leaders died is given up, in the words that it and its units are set aside with.
pub(crate) fn why_given_up_for_deaths() -> String {
    format!(
        "{DEATHS_BEFORE_SET_ASIDE} leaders died over this run without one of its units ending; look for what kills them, \
         then retry its units"
    )
}

/// Why the units of a run that is given up are not retried yet.
pub(crate) fn why_not_retried_yet(run: i64) -> String {
    format!("run {run} is being given up, and its units are still being set aside; ask again once it has ended")
}

/// Where a store stands in its own history; compared to find out that it forgot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lineage {
    /// PostgreSQL's system identifier.
    pub system_identifier: String,
    /// The timeline.
    pub timeline: u32,
    /// The write-ahead log's flushed position, bytes: what outlives a crash.
    pub position: u64,
}

/// Sums per currency, minor units, as text where they are shown.
pub type CurrencySums = BTreeMap<crate::domain::money::Currency, i64>;

//! What operators ask of a leader: acts that only it may do are requests, which it executes.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Actor, JobRow, TickRecord};
use crate::domain::{ElectionName, JobName};

/// What a request of an operator asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum RequestKind {
    /// A manual run of a job: tick and cutoff as given, else the store's now.
    Trigger {
        /// The job.
        job: JobName,
        /// Nominal.
        tick: Option<DateTime<Utc>>,
        /// Not after the store's now.
        cutoff: Option<DateTime<Utc>>,
    },
    /// Manual runs for the ticks of a job that fell due in a span, each with its own cutoff.
    Backfill {
        /// The job.
        job: JobName,
        /// The first due time, included.
        from: DateTime<Utc>,
        /// The last due time, included; not after the store's now.
        to: DateTime<Utc>,
    },
    /// Units set aside are tried again, and their run reopened.
    RetryUnits {
        /// The run.
        run: i64,
        /// Keys; empty: all that are set aside.
        keys: BTreeSet<String>,
    },
}

impl RequestKind {
    /// The word of the command line, as the act is written down.
    #[must_use]
    pub const fn action(&self) -> &'static str {
        match self {
            Self::Trigger { .. } => "trigger",
            Self::Backfill { .. } => "backfill",
            Self::RetryUnits { .. } => "units retry",
        }
    }
}

/// A request that waits for the leader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingRequest {
    /// Identity; also part of the keys of a manual run.
    pub id: Uuid,
    /// What is asked.
    pub kind: RequestKind,
    /// When, by the store's clock.
    pub at: DateTime<Utc>,
}

/// What the leader makes of a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Execution {
    /// Open a manual run of this job row.
    Open {
        /// The job.
        job: Box<JobRow>,
        /// Its tick.
        tick: TickRecord,
    },
    /// Open manual runs of this job row, one for each tick: all of them or none.
    OpenMany {
        /// The job.
        job: Box<JobRow>,
        /// The ticks, in the order of their due times; at least one.
        ticks: Vec<TickRecord>,
    },
    /// Set units of a run back to pending.
    Retry {
        /// The run.
        run: i64,
        /// Keys; empty: all that are set aside.
        keys: BTreeSet<String>,
    },
    /// Refuse, and say why.
    Refuse(String),
}

/// How a request went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state")]
pub enum RequestState {
    /// The leader has not taken it yet.
    Waiting,
    /// Done.
    Done {
        /// The run that was opened or reopened.
        run: i64,
        /// Units set back, for a retry.
        units: u64,
    },
    /// Done: runs were opened, in the order of their ticks.
    Opened {
        /// The runs.
        runs: Vec<i64>,
    },
    /// Refused.
    Refused {
        /// Why, and what is allowed.
        why: String,
    },
}

/// The most waiting requests that are listed.
pub const WAITING_SHOWN: usize = 1000;

/// A request that no leader has taken yet, as people see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitingRequest {
    /// Identity.
    pub id: Uuid,
    /// The election whose leader executes it.
    pub election: ElectionName,
    /// The word of the command line.
    pub action: String,
    /// On what, `job NAME` or `run ID`.
    pub target: String,
    /// All that is asked, a [`RequestKind`] of this release or of a newer one.
    pub asked: serde_json::Value,
    /// Why.
    pub reason: Option<String>,
    /// Operating system user and host.
    pub by: String,
    /// When, by the store's clock.
    pub at: DateTime<Utc>,
}

/// How taking a request back went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WithdrawOutcome {
    /// It waited, and is refused now: no leader executes it.
    Withdrawn,
    /// It was answered before; this is how. Nothing was changed.
    Answered(RequestState),
    /// There is no such request.
    NotFound,
}

/// What a withdrawn request says to whoever asks how it went.
pub(super) fn withdrawn(actor: &Actor, reason: &str) -> RequestState {
    RequestState::Refused { why: format!("withdrawn by {}@{}: {reason}", actor.user, actor.host) }
}

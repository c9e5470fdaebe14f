//! What operators ask of a leader: acts that only it may do are requests, which it executes.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{JobRow, TickRecord};
use crate::domain::JobName;

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
    /// Units set aside are tried again, and their run reopened.
    RetryUnits {
        /// The run.
        run: i64,
        /// Keys; empty: all that are set aside.
        keys: BTreeSet<String>,
    },
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
    /// Refused.
    Refused {
        /// Why, and what is allowed.
        why: String,
    },
}

//! A row per try of an instruction, and what each outcome is called there.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{CallFate, PayoutFate};

/// One try of an instruction: a request that was made for it, or a look-up of its key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitTry {
    /// Its number; numbers grow, and tries from before they were kept have none here.
    pub attempt: u32,
    /// Whether its outcome was only asked for, and nothing sent.
    pub asked: bool,
    /// The term that made it.
    pub term: i64,
    /// Where to; a call's is its job's.
    pub receiver: Option<String>,
    /// When it was put on the wire, by the store's clock.
    pub began_at: DateTime<Utc>,
    /// When its outcome was recorded, or it was put back; none while it is on the wire.
    pub ended_at: Option<DateTime<Utc>>,
    /// `paid` or `done`, `rejected` or `failed`, `mismatch`, `unknown`, `undone` (nothing was done) or `not_sent`.
    pub outcome: Option<String>,
    /// Status or cause, where there is more to say.
    pub detail: Option<String>,
}

impl PayoutFate {
    /// The try's outcome, as its row has it.
    #[must_use]
    pub const fn outcome(&self) -> &'static str {
        match self {
            Self::Paid { .. } => "paid",
            Self::Mismatch { .. } => "mismatch",
            Self::Rejected { .. } => "rejected",
            Self::Unknown { .. } => "unknown",
            Self::Back { left: true, .. } => "undone",
            Self::Back { left: false, .. } => "not_sent",
        }
    }

    /// What there is to say of it.
    #[must_use]
    pub fn error(&self) -> Option<&str> {
        match self {
            Self::Paid { .. } => None,
            Self::Mismatch { error } | Self::Rejected { error } | Self::Unknown { error, .. } => Some(error),
            Self::Back { error, .. } => error.as_deref(),
        }
    }
}

impl CallFate {
    /// The try's outcome, as its row has it.
    #[must_use]
    pub const fn outcome(&self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed { .. } => "failed",
            Self::NotSent | Self::Stopped { left: false, .. } => "not_sent",
            Self::Stopped { left: true, .. } | Self::PutOff { .. } => "undone",
            Self::Unknown { .. } => "unknown",
        }
    }

    /// What there is to say of it.
    #[must_use]
    pub fn error(&self) -> Option<&str> {
        match self {
            Self::Done | Self::NotSent => None,
            Self::Failed { error, .. }
            | Self::Stopped { error, .. }
            | Self::PutOff { error, .. }
            | Self::Unknown { error, .. } => Some(error),
        }
    }
}

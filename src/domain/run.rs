//! Runs: the durable record of one tick of one job.

use serde::{Deserialize, Serialize};

/// The state of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// Its units are being written; it can neither be worked on nor finish.
    Planning,
    /// Its units are being settled.
    Open,
    /// Every unit ended, none set aside.
    Complete,
    /// Every unit ended, some set aside.
    CompleteSetAside,
    /// A tick without work: skipped, and why.
    Skipped,
    /// A tick without work: taken together with another.
    Coalesced,
    /// A tick without work: too old to be caught up.
    Missed,
}

impl RunState {
    /// All states, in the order of reports.
    pub const ALL: [Self; 7] = [
        Self::Planning,
        Self::Open,
        Self::Complete,
        Self::CompleteSetAside,
        Self::Skipped,
        Self::Coalesced,
        Self::Missed,
    ];

    /// The name used in the store, in metrics and in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Planning => "planning",
            Self::Open => "open",
            Self::Complete => "complete",
            Self::CompleteSetAside => "complete_set_aside",
            Self::Skipped => "skipped",
            Self::Coalesced => "coalesced",
            Self::Missed => "missed",
        }
    }

    /// Reads the stored name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }

    /// Whether units of the run may still end.
    #[must_use]
    pub const fn is_open(self) -> bool {
        match self {
            Self::Planning | Self::Open => true,
            Self::Complete | Self::CompleteSetAside | Self::Skipped | Self::Coalesced | Self::Missed => false,
        }
    }
}

/// What opened a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunKind {
    /// The schedule. Unique per job and tick.
    Tick,
    /// An operator's trigger or backfill. Unique per request and tick; does not stand in a tick's way.
    Manual,
}

impl RunKind {
    /// The name used in the store, in keys and in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tick => "tick",
            Self::Manual => "manual",
        }
    }

    /// Reads the stored name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Tick, Self::Manual].into_iter().find(|kind| kind.as_str() == text)
    }
}

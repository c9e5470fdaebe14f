//! What pausing a job answers.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// How pausing a job, or ending its pause, went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub enum PauseOutcome {
    /// Done, in force with the next transaction, and written down as an act.
    Done,
    /// It was so already: nothing is changed.
    Already {
        /// Since when and why, where it is paused.
        pause: Option<PauseView>,
    },
    /// There is no such job in the store.
    NotFound,
}

/// A pause that lasts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PauseView {
    /// When it began, by the store's clock.
    pub since: DateTime<Utc>,
    /// Why.
    pub reason: String,
}

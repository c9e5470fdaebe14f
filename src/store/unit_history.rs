//! All that a store keeps of one unit: what it bound, what was posted, its requests and each of their tries, what operators
//! did about it.

use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};

use super::{ActView, UnitTry, UnitView};
use crate::domain::instruction::InstructionState;

/// The most postings, requests and acts of one unit that are shown, of each.
pub const UNIT_HISTORY_SHOWN: u32 = 1_000;

/// One unit with its history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitHistory {
    /// The unit.
    #[serde(flatten)]
    pub unit: UnitView,
    /// Of its keys: grows when it is retried after an instruction that was final without effect.
    pub generation: u32,
    /// The batch that ended it.
    pub batch: Option<UnitBatch>,
    /// What it bound, by source, carries apart.
    pub entries: Vec<UnitEntries>,
    /// Its journals' lines, oldest first.
    pub postings: Vec<UnitPosting>,
    /// Its requests: payouts, or the calls of an outside handler; oldest first.
    pub requests: Vec<UnitRequest>,
    /// What operators did about it, its payouts and its run; oldest first.
    pub acts: Vec<ActView>,
}

/// The batch that ended a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitBatch {
    /// Identity.
    pub id: i64,
    /// The term that committed it.
    pub term: i64,
    /// When, by the store's clock.
    pub committed_at: DateTime<Utc>,
}

/// Entries of one source that a unit bound. Major units as text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitEntries {
    /// The source; `bursar` for what it wrote itself.
    pub source: String,
    /// Whether these are carries of earlier runs.
    pub carries: bool,
    /// How many.
    pub entries: u64,
    /// Σ amount.
    pub amount: String,
    /// Σ fee.
    pub fee: String,
}

/// One line of a journal. Major units as text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitPosting {
    /// `settle`, `paid`, `rejected` or `returned`.
    pub journal: String,
    /// The unit's generation.
    pub generation: u32,
    /// The term that posted it.
    pub term: i64,
    /// Debited: the account, with its owner after a colon where it has one.
    pub debit: String,
    /// Credited.
    pub credit: String,
    /// ISO 4217.
    pub currency: String,
    /// Above 0.
    pub amount: String,
}

/// One instruction with all its tries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitRequest {
    /// The idempotency key.
    pub key: String,
    /// `payout` or `call`.
    pub kind: String,
    /// The unit's generation.
    pub generation: u32,
    /// Its state.
    pub state: InstructionState,
    /// Why it is held.
    pub reason: Option<String>,
    /// `auto`, `waiting` or `released`.
    pub release: String,
    /// Tries, also those of which no byte left.
    pub attempts: u32,
    /// Whether any try's outcome was unknown.
    pub in_doubt: bool,
    /// The first try that was not proved undone.
    pub first_sent_at: Option<DateTime<Utc>>,
    /// Not before.
    pub next_attempt_at: Option<DateTime<Utc>>,
    /// The receiver that it was last handed to.
    pub receiver: Option<String>,
    /// The receiver's, or an operator's, own name for it.
    pub reference: Option<String>,
    /// The last error.
    pub last_error: Option<String>,
    /// The day on which the money counts.
    pub value_date: Option<NaiveDate>,
    /// The term that wrote it.
    pub term: i64,
    /// The term that is sending it now.
    pub sending_term: Option<i64>,
    /// When it was written.
    pub created_at: DateTime<Utc>,
    /// When it became final.
    pub final_at: Option<DateTime<Utc>>,
    /// Each try, oldest first.
    pub tries: Vec<UnitTry>,
}

/// An account as it is shown.
pub(super) fn account(kind: &str, owner: &str) -> String {
    if owner.is_empty() { kind.to_owned() } else { format!("{kind}:{owner}") }
}

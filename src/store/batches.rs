//! What a tenure hands to the store and gets from it for units: picks, effects, charges, calls.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use super::BatchError;
use crate::domain::job::LedgerDefinition;
use crate::domain::outside::SqlDefinition;

/// Which units a batch takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnitPick {
    /// Units never tried, with an id above `after`, in the order of ids. Those locked by another batch are passed over.
    Fresh {
        /// The keyset cursor; 0 at first.
        after: i64,
        /// 1 to 10,000.
        limit: u32,
    },
    /// Units tried before whose wait is over.
    Retry {
        /// 1 to 10,000.
        limit: u32,
    },
    /// Exactly these, as far as they are still pending: halves of a failed batch.
    Exactly(Vec<i64>),
}

/// The effect of an in-store batch, committed together with the state of its units.
#[derive(Clone)]
pub enum Effect {
    /// Bind entries, net, post, carry, write instructions.
    Ledger(LedgerDefinition),
    /// One statement of the user's over `bursar_batch`; the units are settled with it.
    Sql(Arc<SqlDefinition>),
    /// The units are settled and nothing else; the hook runs inside the open transaction, before anything is written.
    Mark(Arc<dyn BatchHook>),
}

/// What runs inside a batch's transaction.
#[async_trait]
pub trait BatchHook: Send + Sync {
    /// Looks at the keys of the batch.
    ///
    /// # Errors
    /// A [`BatchError`] rolls the batch back.
    async fn run(&self, keys: &[String]) -> Result<(), BatchError>;
}

/// How a batch went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettleOutcome {
    /// No unit is due.
    Nothing,
    /// Committed.
    Settled(BatchCounts),
    /// Rolled back as a verdict on its units.
    Failed {
        /// The units that it had taken, with the attempts behind each, in the order of ids.
        units: Vec<(i64, u32)>,
        /// Why.
        error: BatchError,
    },
}

/// What a batch did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchCounts {
    /// Units that ended settled.
    pub settled: u64,
    /// Units that ended carried.
    pub carried: u64,
    /// Units that had nothing left to bind.
    pub empty: u64,
    /// Instructions written.
    pub instructions: u64,
    /// The highest unit id taken; the next cursor.
    pub last_unit: i64,
    /// Units taken; fewer than asked for: a short page.
    pub taken: u64,
    /// The row of the batch.
    pub batch: i64,
}

/// One failed attempt at one unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Charge {
    /// The unit.
    pub unit: i64,
    /// The attempts behind it before this one; compared.
    pub attempts: u32,
    /// For a person.
    pub error: String,
    /// Wait before the next attempt; `None` sets it aside.
    pub again_in: Option<Duration>,
}

/// One call to make, committed as `sending` under this term.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The instruction.
    pub instruction: i64,
    /// Its unit.
    pub unit: i64,
    /// The unit's key.
    pub key: String,
    /// The same at every try.
    pub idempotency_key: String,
    /// Which try this is, from 1; compared when it is recorded.
    pub attempt: u32,
    /// Attempts that were charged to the unit before.
    pub charged: u32,
    /// Whether an earlier try's outcome is unknown.
    pub in_doubt: bool,
    /// How long ago, by the store's clock, the first try was taken.
    pub age: Duration,
    /// The bytes that were stored with the instruction; the same at every try.
    pub body: Vec<u8>,
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallFate {
    /// Done: the unit is settled.
    Done,
    /// It surely had no effect and failed: charged, tried again after the wait, or set aside (`None`).
    Failed {
        /// For a person.
        error: String,
        /// The wait.
        again_in: Option<Duration>,
    },
    /// No byte left (the gate was closed): put back as it was, no attempt.
    NotSent,
    /// Its receiver is not to be sent anything for now: no attempt, and taken again after the wait, when others were tried.
    Stopped {
        /// For a person.
        error: String,
        /// The wait.
        again_in: Duration,
        /// Whether the receiver may have seen the key: it counts from this try on then.
        left: bool,
    },
    /// Nothing was done, which says nothing about the unit (no connection, "not now"): no attempt, taken again after the wait. Its key
    /// goes on counting from the first take, so that this ends.
    PutOff {
        /// For a person.
        error: String,
        /// The wait.
        again_in: Duration,
    },
    /// It may have had its effect. Tried again after the wait where the handler is idempotent, else (`None`) held and the
    /// unit set aside.
    Unknown {
        /// For a person.
        error: String,
        /// The wait.
        again_in: Option<Duration>,
    },
}

/// A call with what came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallRecord {
    /// The instruction.
    pub instruction: i64,
    /// The try that is recorded; compared.
    pub attempt: u32,
    /// What came of it.
    pub fate: CallFate,
}

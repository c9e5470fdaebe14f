//! What settles a unit, behind one port with two shapes.
//!
//! - *In-store*: the whole effect is in the database. The handler only says which [`Effect`] it is; the store commits it
//!   together with the units' states, in one fenced transaction. A crash rolls all of it back.
//! - *Outside*: the effect is elsewhere. Per unit: record, call, record. The handler makes the call and says what it knows
//!   of its outcome; before its first byte it asks for leave ([`Departure`]).
//!
//! Invariants: a handler never sees a claim it could write with, decides nothing about attempts, and does not outlive its
//! tenure. Code that may compute for long goes to the blocking pool.
//!
//! Deliberately absent: `sql`, `http` and `command`, whose places these two shapes are.

mod absent;
mod catch;
pub mod command;
mod departure;
mod fence;
pub mod http;
mod ledger;
#[cfg(feature = "chaos")]
mod probe;

use std::sync::Arc;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

pub use catch::{caught, guarded};
pub use departure::{Departure, Leave, NotSent};
pub use fence::Fence;

use crate::domain::Claim;
use crate::domain::job::HandlerDefinition;
use crate::store::{Call, Effect, OpenRun, PlanSource};

/// What a handler knows of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallOutcome {
    /// It had its effect.
    Done,
    /// It surely had none, and failed.
    Failed {
        /// For a person; no amounts, no names.
        error: String,
        /// Whether another attempt cannot succeed.
        permanent: bool,
    },
    /// Leave was not given: no byte left.
    NotSent,
    /// It may have had its effect.
    Unknown {
        /// For a person.
        error: String,
    },
}

/// A handler whose effect is outside the store.
#[async_trait]
pub trait OutsideHandler: Send + Sync {
    /// Whether a call whose outcome is unknown may be made again with the same key.
    fn is_idempotent(&self) -> bool;

    /// Makes one call. Asks `departure` right before the first byte, and answers [`CallOutcome::NotSent`] where that is
    /// refused. Dropped without warning where the tenure ends abruptly.
    async fn call(&self, call: &Call, departure: &Departure) -> CallOutcome;
}

/// The two shapes.
#[derive(Clone)]
pub enum Shape {
    /// Effect and state commit together.
    InStore(Effect),
    /// Record, call, record.
    Outside(Arc<dyn OutsideHandler>),
}

/// A handler, ready for one run.
#[derive(Clone)]
pub struct Handler {
    /// Where the run's units come from.
    pub plan: PlanSource,
    /// How they are settled.
    pub shape: Shape,
}

impl Handler {
    /// The handler of a run, under the definition that it was opened with. `stop` ends what it computes.
    #[must_use]
    pub fn of(run: &OpenRun, claim: &Claim, stop: &CancellationToken) -> Self {
        // Only what the handlers of the tests show in their effects.
        #[cfg(not(feature = "chaos"))]
        let _ = (claim, stop);
        match &run.definition.handler {
            HandlerDefinition::Ledger(definition) => ledger::handler(definition),
            // The configuration refuses them: such a run is another release's.
            HandlerDefinition::Sql(_) | HandlerDefinition::Http(_) | HandlerDefinition::Command(_) => absent::handler(),
            #[cfg(feature = "chaos")]
            HandlerDefinition::Probe(definition) => probe::handler(definition, run, claim, stop),
        }
    }
}

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
//! `ledger` and `sql` are in-store, and no more here than the name of their effect; `http` and `command` are outside.

mod catch;
pub mod command;
mod departure;
mod fence;
pub mod http;
mod ledger;
#[cfg(feature = "chaos")]
mod probe;
mod unfit;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

pub use catch::{caught, guarded};
pub use departure::{Departure, Leave, NotSent};
pub use fence::Fence;

use crate::domain::job::HandlerDefinition;
use crate::domain::{Claim, Moment, Term};
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
    /// It surely had none, or may have had it (`in_doubt`), and the receiver asked for a wait.
    PutOff {
        /// For a person.
        error: String,
        /// The wait that it asked for.
        after: Duration,
        /// Whether it may have had its effect.
        in_doubt: bool,
    },
    /// It may have had its effect, and another call would tell no more: the receiver has something else under the key, or a program
    /// ended with a code that proves nothing.
    Mismatch {
        /// For a person.
        error: String,
    },
    /// Nothing was done, since the receiver has seen a higher token: the fence is to be read again.
    Fenced {
        /// What it has seen.
        highest: Term,
    },
    /// Nothing was done, which says nothing about the unit: no byte was written, or the receiver said not now. No attempt at it.
    NotNow {
        /// For a person.
        error: String,
        /// The wait that the receiver asked for.
        after: Option<Duration>,
    },
    /// The receiver says a final no.
    Refused {
        /// For a person.
        error: String,
    },
    /// The receiver is not to be sent anything for now; the unit is as before the call, which is no attempt at it.
    Stopped {
        /// The reason on record.
        reason: &'static str,
        /// For a person.
        why: String,
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

    /// The receiver that calls go to, where it may be stopped and has limits.
    fn receiver(&self) -> Option<&http::Receiver> {
        None
    }

    /// Makes one call, which was taken at `taken_at` or later. Asks `departure` right before the first byte, and answers
    /// [`CallOutcome::NotSent`] where that is refused. Dropped without warning where the tenure ends abruptly.
    async fn call(&self, call: &Call, taken_at: Moment, departure: &Departure) -> CallOutcome;
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

/// What a tenure lends to the handlers of its runs.
pub struct Lent<'a> {
    /// Its claim.
    pub claim: &'a Claim,
    /// Ends what they compute or have started.
    pub stop: &'a CancellationToken,
    /// Of the store.
    pub deployment: Uuid,
    /// Until when the session's lease is held; moved on with every renewal.
    pub deadline: watch::Receiver<Moment>,
    /// The store's time as the tenure knows it.
    pub store_time: http::AskStoreTime,
    /// The receivers of the process.
    pub receivers: &'a http::Receivers,
}

impl Handler {
    /// The handler of a run, under the definition that it was opened with.
    #[must_use]
    pub fn of(run: &OpenRun, lent: &Lent<'_>) -> Self {
        let fence = || Fence::new(lent.deployment, lent.claim);
        match &run.definition.handler {
            HandlerDefinition::Ledger(definition) => ledger::handler(definition),
            HandlerDefinition::Sql(definition) => Self {
                plan: PlanSource::Query(definition.units.clone()),
                shape: Shape::InStore(Effect::Sql(Arc::new(definition.clone()))),
            },
            HandlerDefinition::Http(definition) => {
                let outside: Arc<dyn OutsideHandler> = match lent.receivers.of(&definition.receiver) {
                    Ok(receiver) => Arc::new(http::HttpHandler::new(receiver, fence(), Arc::clone(&lent.store_time))),
                    Err(error) => Arc::new(unfit::Unfit::new(error.to_string(), definition.receiver.idempotent)),
                };
                Self { plan: PlanSource::Query(definition.units.clone()), shape: Shape::Outside(outside) }
            }
            HandlerDefinition::Command(definition) => {
                let (deadline, stop) = (lent.deadline.clone(), lent.stop.clone());
                let outside = command::CommandHandler::new(definition.clone(), fence(), deadline, stop);
                Self { plan: PlanSource::Query(definition.units.clone()), shape: Shape::Outside(Arc::new(outside)) }
            }
            #[cfg(feature = "chaos")]
            HandlerDefinition::Probe(definition) => probe::handler(definition, run, lent.claim, lent.stop),
        }
    }
}

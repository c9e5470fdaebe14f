//! The edge to leadership: what a tenure is ordered, what it asks before it begins anything, and what it reports.
//!
//! Narrow on purpose: a tenure neither knows sessions nor elections, and a test can stand in for all of leadership with a
//! channel and a flag.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;

use super::AcceptedMemory;
use crate::domain::{Claim, ElectionName, Moment, Term};
use crate::store::FenceHolder;

/// The gate is closed for good: the session is lost or the tenure ending.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the gate is closed: the tenure is over")]
pub struct GateClosed;

/// What is asked before anything begins.
#[async_trait]
pub trait Gate: Send + Sync {
    /// Waits while the session is suspect, and answers at once while it is live.
    ///
    /// # Errors
    /// [`GateClosed`] once the session is lost or the tenure told to end.
    async fn pass(&self) -> Result<(), GateClosed>;

    /// Until when the session is held, moved on with every renewal; the start of the boot clock once it is lost. For what
    /// has to end by itself where this process does not: child processes.
    fn deadline(&self) -> watch::Receiver<Moment>;
}

/// How a tenure is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// Begun batches commit, calls under way are awaited so long.
    Planned {
        /// The longest wait.
        drain: Duration,
    },
    /// Waits for nothing.
    Abrupt,
}

/// What leadership orders.
pub enum Order {
    /// Begin a tenure.
    Begin(Begin),
    /// End one. May be said again, with [`Ending::Abrupt`].
    End {
        /// The tenure.
        claim: Claim,
        /// How.
        ending: Ending,
        /// Why, for the history of terms.
        reason: String,
    },
    /// Report the fence's term of an election.
    ReadFence {
        /// The election.
        election: ElectionName,
    },
}

/// What a tenure begins with.
pub struct Begin {
    /// What was won.
    pub claim: Claim,
    /// Its session's gate.
    pub gate: Arc<dyn Gate>,
    /// What the coordinator remembers of the store, written under this win.
    pub memory: Arc<dyn AcceptedMemory>,
    /// How it came about, for the history of terms.
    pub win: Win,
}

/// How a term came about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Win {
    /// Handed over by the leader before it.
    pub handed_over: bool,
    /// How long the replica had seen the place free.
    pub vacant_for: Option<Duration>,
    /// When the replica learnt of it, in boot time.
    pub at: Moment,
}

/// What leadership is told. None of these waits.
pub trait Reports: Send + Sync {
    /// The fence's term of an election, or why it could not be read.
    fn fence_term(&self, election: &ElectionName, term: Result<Term, String>);
    /// The store has accepted the claim.
    fn accepted(&self, claim: &Claim);
    /// The first transaction of kind *begin* after the advance has committed.
    fn first_work(&self, claim: &Claim);
    /// A step of the promotion failed.
    fn promotion_failed(&self, claim: &Claim, why: &str);
    /// The store refused the claim.
    fn fenced(&self, claim: &Claim, found: Option<FenceHolder>);
    /// The tenure failed by itself.
    fn fault(&self, claim: &Claim, why: &str);
    /// Nothing of the tenure goes on any more.
    fn ended(&self, claim: &Claim);
    /// The workers live.
    fn beat(&self);
}

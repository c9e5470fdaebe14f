//! Why a replica ended other than by a signal.

use std::io;
use std::time::Duration;

use crate::store::{CoordinatorBinding, StoreError};
use crate::web::WebError;

/// Why a replica ended other than by a signal.
#[derive(Debug, thiserror::Error)]
pub enum ReplicaError {
    /// The schedule has no job for the elections that the replica stands for.
    #[error(
        "replica.elections holds none of the elections that the schedule names ({schedule}); expected at least one, or \"*\""
    )]
    NoElection {
        /// What the schedule names.
        schedule: String,
    },
    /// The HTTP port.
    #[error(transparent)]
    Web(#[from] WebError),
    /// The store cannot be used, and waiting does not mend it.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The terms in the store come from elsewhere.
    #[error(
        "the store belongs to the coordinator {} with prefix {:?}, this replica is configured for {} with prefix {:?}: \
         terms of two coordinators cannot be compared; correct coordinator.prefix, or use another database",
        found.kind, found.prefix, configured.kind, configured.prefix
    )]
    OtherCoordinator {
        /// What the store is bound to.
        found: CoordinatorBinding,
        /// What is configured.
        configured: CoordinatorBinding,
    },
    /// No thread, runtime or signal handler.
    #[error("the operating system gave no thread, runtime or signal handler: {0}")]
    System(#[from] io::Error),
    /// A part of the replica ended by itself.
    #[error("{0} ended by itself: half a replica is worse than none")]
    PartEnded(&'static str),
    /// Leaving took too long: the session's thread still lives.
    #[error("leadership was not given up within {0:?}; the lease lapses by itself")]
    LeavingTook(Duration),
    /// A table of ours is wrong.
    #[error("the metrics cannot be set up: {0}")]
    Metrics(String),
}

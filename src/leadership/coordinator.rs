//! The port to the coordinator: the linearizable store that elections go through.
//!
//! Every conditional operation answers with what it found. An operation whose outcome is not known is an error
//! ([`CoordinatorError::Unknown`]), and only reading again settles it. A watch only wakes; what it then means is read.
//!
//! Deliberately absent: sessions, standing, own records. Those are the machine's.

use std::time::Duration;

use async_trait::async_trait;

use super::record::{
    AcceptedOutcome, Campaign, CampaignOutcome, ElectionState, Grant, LeaseId, Members, RegisterOutcome, RenewOutcome,
    ReplicaRecord, ResignOutcome, Revision, RevokeOutcome, Transfer, TransferOutcome, Win,
};
use crate::domain::{ElectionName, Term};

/// Why an operation has no outcome.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CoordinatorError {
    /// No member could be reached. The operation may still have been taken in by one that answered too late.
    #[error("the coordinator cannot be reached at {endpoint}: {why}")]
    Unreachable {
        /// The member tried last.
        endpoint: String,
        /// What the client said.
        why: String,
    },
    /// The operation was sent and not answered in time. It may have been done.
    #[error("no answer from the coordinator at {endpoint} within {limit:?}: the outcome is unknown")]
    Unknown {
        /// The member asked.
        endpoint: String,
        /// How long it had.
        limit: Duration,
    },
    /// The coordinator refused: credentials or permissions.
    #[error("the coordinator at {endpoint} refused: {why}")]
    Denied {
        /// The member asked.
        endpoint: String,
        /// What it said.
        why: String,
    },
    /// A key holds what bursar never writes.
    #[error("key {key} holds {found:?}, expected {expected}")]
    Corrupt {
        /// The key.
        key: String,
        /// Its content, cut short.
        found: String,
        /// What it should hold.
        expected: &'static str,
    },
}

/// A watch on one election's leader key.
#[async_trait]
pub trait ElectionWatch: Send {
    /// Returns when the leader key may have changed since the last return (or since the revision watched from).
    ///
    /// # Errors
    /// The watch is over, without a word on what was missed: read, and watch again from there.
    async fn woken(&mut self) -> Result<(), CoordinatorError>;
}

/// The coordinator. Every call is bounded by the adapter's own deadline for attempts; none retries by itself.
#[async_trait]
pub trait Coordinator: Send + Sync {
    /// Grants a lease of about `ttl`.
    ///
    /// # Errors
    /// [`CoordinatorError`]; a lease that was granted all the same lapses by itself.
    async fn grant(&self, ttl: Duration) -> Result<Grant, CoordinatorError>;

    /// Renews a lease.
    ///
    /// # Errors
    /// [`CoordinatorError`]: the renewal counts as failed, whatever the coordinator did.
    async fn renew(&self, lease: LeaseId) -> Result<RenewOutcome, CoordinatorError>;

    /// Revokes a lease and deletes every key on it.
    ///
    /// # Errors
    /// [`CoordinatorError`]: it lapses by itself.
    async fn revoke(&self, lease: LeaseId) -> Result<RevokeOutcome, CoordinatorError>;

    /// Reads both keys of an election in one linearizable transaction.
    ///
    /// # Errors
    /// [`CoordinatorError`].
    async fn read_election(&self, election: &ElectionName) -> Result<ElectionState, CoordinatorError>;

    /// Tries to win, in one transaction.
    ///
    /// # Errors
    /// [`CoordinatorError`]: whether it was won is unknown; read.
    async fn campaign(&self, campaign: &Campaign) -> Result<CampaignOutcome, CoordinatorError>;

    /// Deletes the leader key if it is still from that win.
    ///
    /// # Errors
    /// [`CoordinatorError`]: whether it was deleted is unknown; the same call again is safe.
    async fn resign(&self, election: &ElectionName, won: Win) -> Result<ResignOutcome, CoordinatorError>;

    /// Hands an election over to a successor, in one transaction.
    ///
    /// # Errors
    /// [`CoordinatorError`]: whether it was handed over is unknown; read.
    async fn transfer(&self, transfer: &Transfer) -> Result<TransferOutcome, CoordinatorError>;

    /// Watches an election's leader key from a revision on.
    ///
    /// # Errors
    /// [`CoordinatorError`].
    async fn watch(&self, election: &ElectionName, from: Revision) -> Result<Box<dyn ElectionWatch>, CoordinatorError>;

    /// Puts this replica's record on its lease.
    ///
    /// # Errors
    /// [`CoordinatorError`].
    async fn put_replica(&self, record: &ReplicaRecord) -> Result<RegisterOutcome, CoordinatorError>;

    /// All replicas that are registered on a lease, at most [`MOST_REPLICAS`]. Records that cannot be read are left out.
    ///
    /// # Errors
    /// [`CoordinatorError`].
    async fn list_replicas(&self) -> Result<Vec<ReplicaRecord>, CoordinatorError>;

    /// What the store was last known to be, as the leader wrote it.
    ///
    /// # Errors
    /// [`CoordinatorError`].
    async fn read_accepted(&self, election: &ElectionName) -> Result<Option<String>, CoordinatorError>;

    /// Notes what the store is, if the leader key is still from that win. No lease: it outlives the leader.
    ///
    /// # Errors
    /// [`CoordinatorError`]: whether it was noted is unknown; the same call again is safe.
    async fn put_accepted(
        &self,
        election: &ElectionName,
        won: Win,
        accepted: &str,
    ) -> Result<AcceptedOutcome, CoordinatorError>;

    /// Lifts the term issued to at least `least`, so that the next one is above it; never lowers it. Answers the term that then
    /// counts as issued. An operator's, who knows what receivers have seen.
    ///
    /// # Errors
    /// [`CoordinatorError`]: the same call again is safe.
    async fn lift_term(&self, election: &ElectionName, least: Term) -> Result<Term, CoordinatorError>;

    /// Asks each member whether it answers. Never fails: a member that does not answer is not reachable.
    async fn members(&self) -> Members;
}

/// The most replicas that a listing shows.
pub const MOST_REPLICAS: usize = 1000;

//! What leadership tells metrics. Telemetry implements it; everything has a default that does nothing.

use std::time::Duration;

use super::reason::{SessionState, Suspicion, TransitionReason};
use super::record::{Members, ReplicaRecord};
use crate::domain::ElectionName;

/// Told by the session's thread, in order. Implementations must not block.
pub trait Observer: Send + Sync {
    /// Leadership was won or is being given up here.
    fn transition(&self, _election: &ElectionName, _reason: TransitionReason) {}
    /// The session is in another state.
    fn session(&self, _state: SessionState, _suspicion: Option<Suspicion>) {}
    /// A renewal was answered after this long.
    fn renewal(&self, _took: Duration) {}
    /// A lease was lost.
    fn lease_expired(&self) {}
    /// From the leader's end seen to the win.
    fn election_took(&self, _election: &ElectionName, _took: Duration) {}
    /// From the leader's end seen to the first work.
    fn takeover_took(&self, _election: &ElectionName, _took: Duration) {}
    /// From the order to end a tenure to its end.
    fn teardown_took(&self, _election: &ElectionName, _took: Duration) {}
    /// A tenure did not end within its budget; the process ends.
    fn teardown_overran(&self, _election: &ElectionName) {}
    /// Whether the last operation at the coordinator was answered.
    fn coordinator_up(&self, _up: bool) {}
    /// How many of the coordinator's members answer.
    fn members(&self, _members: Members) {}
    /// Who is registered, every few seconds.
    fn replicas(&self, _replicas: Vec<ReplicaRecord>) {}
}

/// Observes nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoObserver;

impl Observer for NoObserver {}

//! A coordinator in memory, for simulators and tests: the port in front of [`MemoryModel`].
//!
//! It answers at once, keeps nothing beyond the process, and can be taken away and put back. It passes the contract that
//! etcd passes.

mod model;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;

pub use model::MemoryModel;

use super::coordinator::{Coordinator, CoordinatorError, ElectionWatch, MOST_REPLICAS};
use super::gate::Clock;
use super::record::{
    AcceptedOutcome, Campaign, CampaignOutcome, ElectionState, Grant, LeaseId, Members, RegisterOutcome, RenewOutcome,
    ReplicaRecord, ResignOutcome, Revision, RevokeOutcome, Transfer, TransferOutcome, Win,
};
use crate::domain::{ElectionName, Moment, Term};

/// How often a quiet watch looks whether a lease has lapsed: nobody tells it.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// A coordinator in memory. Clones share one content.
#[derive(Clone)]
pub struct MemoryCoordinator {
    shared: Arc<Shared>,
}

struct Shared {
    model: Mutex<MemoryModel>,
    clock: Clock,
    changed: watch::Sender<()>,
    away: Mutex<bool>,
}

impl MemoryCoordinator {
    /// An empty one, on this clock.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        let (changed, _) = watch::channel(());
        let (model, away) = (Mutex::new(MemoryModel::default()), Mutex::new(false));
        Self { shared: Arc::new(Shared { model, clock, changed, away }) }
    }

    /// Makes every operation fail from now on, or stop failing.
    pub fn set_away(&self, away: bool) {
        *self.shared.away.lock().unwrap_or_else(PoisonError::into_inner) = away;
        self.shared.changed.send_replace(());
    }

    /// Works on the content, past the port: a person's hand.
    pub fn edit<T>(&self, edit: impl FnOnce(&mut MemoryModel) -> T) -> T {
        let result = edit(&mut self.model());
        self.shared.changed.send_replace(());
        result
    }

    fn model(&self) -> MutexGuard<'_, MemoryModel> {
        self.shared.model.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reachable(&self) -> Result<(), CoordinatorError> {
        if *self.shared.away.lock().unwrap_or_else(PoisonError::into_inner) {
            return Err(CoordinatorError::Unreachable { endpoint: "memory".to_owned(), why: "taken away".to_owned() });
        }
        Ok(())
    }

    fn operate<T>(&self, operation: impl FnOnce(&mut MemoryModel, Moment) -> T) -> Result<T, CoordinatorError> {
        self.reachable()?;
        let now = (self.shared.clock)();
        Ok(self.edit(|model| operation(model, now)))
    }
}

struct MemoryWatch {
    coordinator: MemoryCoordinator,
    changed: watch::Receiver<()>,
    election: ElectionName,
    from: Revision,
}

#[async_trait]
impl ElectionWatch for MemoryWatch {
    async fn woken(&mut self) -> Result<(), CoordinatorError> {
        loop {
            self.changed.mark_unchanged();
            self.coordinator.reachable()?;
            let now = (self.coordinator.shared.clock)();
            // Looked at without `edit`: a look is no change, and must not wake other watches.
            let seen = self.coordinator.model().changed_since(now, &self.election, self.from);
            if let Some(at) = seen {
                self.from = at.next();
                return Ok(());
            }
            // Told or not, the next thing is to look.
            let _looked = tokio::time::timeout(LOOK_AGAIN, self.changed.changed()).await;
        }
    }
}

#[async_trait]
impl Coordinator for MemoryCoordinator {
    async fn grant(&self, ttl: Duration) -> Result<Grant, CoordinatorError> {
        self.operate(|model, now| model.grant(now, ttl))
    }

    async fn renew(&self, lease: LeaseId) -> Result<RenewOutcome, CoordinatorError> {
        self.operate(|model, now| model.renew(now, lease))
    }

    async fn revoke(&self, lease: LeaseId) -> Result<RevokeOutcome, CoordinatorError> {
        self.operate(|model, now| model.revoke(now, lease))
    }

    async fn read_election(&self, election: &ElectionName) -> Result<ElectionState, CoordinatorError> {
        self.operate(|model, now| model.read(now, election))
    }

    async fn campaign(&self, campaign: &Campaign) -> Result<CampaignOutcome, CoordinatorError> {
        self.operate(|model, now| model.campaign(now, campaign))
    }

    async fn resign(&self, election: &ElectionName, won: Win) -> Result<ResignOutcome, CoordinatorError> {
        self.operate(|model, now| model.resign(now, election, won))
    }

    async fn transfer(&self, transfer: &Transfer) -> Result<TransferOutcome, CoordinatorError> {
        self.operate(|model, now| model.transfer(now, transfer))
    }

    async fn watch(&self, election: &ElectionName, from: Revision) -> Result<Box<dyn ElectionWatch>, CoordinatorError> {
        self.reachable()?;
        let changed = self.shared.changed.subscribe();
        Ok(Box::new(MemoryWatch { coordinator: self.clone(), changed, election: election.clone(), from }))
    }

    async fn put_replica(&self, record: &ReplicaRecord) -> Result<RegisterOutcome, CoordinatorError> {
        self.operate(|model, now| model.put_replica(now, record))
    }

    async fn list_replicas(&self) -> Result<Vec<ReplicaRecord>, CoordinatorError> {
        self.operate(|model, now| model.replicas(now).into_iter().take(MOST_REPLICAS).collect())
    }

    async fn read_accepted(&self, election: &ElectionName) -> Result<Option<String>, CoordinatorError> {
        self.operate(|model, _| model.accepted(election))
    }

    async fn put_accepted(
        &self,
        election: &ElectionName,
        won: Win,
        accepted: &str,
    ) -> Result<AcceptedOutcome, CoordinatorError> {
        self.operate(|model, now| model.put_accepted(now, election, won, accepted))
    }

    async fn lift_term(&self, election: &ElectionName, least: Term) -> Result<Term, CoordinatorError> {
        self.operate(|model, now| model.lift_term(now, election, least))
    }

    async fn members(&self) -> Members {
        Members { reachable: u32::from(self.reachable().is_ok()), total: 1 }
    }
}

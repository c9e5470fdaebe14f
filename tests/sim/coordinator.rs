//! One replica's way to the coordinator: the port in front of the model, with messages that take time, are lost, or are
//! answered too late.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bursar::domain::{Claim, ElectionName, Moment, Term};
use bursar::leadership::coordinator::MOST_REPLICAS;
use bursar::leadership::memory::MemoryModel;
use bursar::leadership::{
    AcceptedOutcome, Campaign, CampaignOutcome, Coordinator, CoordinatorError, ElectionState, ElectionWatch, Grant,
    LeaseId, Members, RegisterOutcome, RenewOutcome, ReplicaRecord, ResignOutcome, Revision, RevokeOutcome, Transfer,
    TransferOutcome, Win,
};

use crate::facts::Touch;
use crate::world::{To, World};

/// How often a quiet watch looks whether a lease has lapsed: nobody tells it.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// The way of one incarnation.
#[derive(Clone)]
pub struct Way {
    pub world: Arc<World>,
    pub place: usize,
    pub incarnation: u32,
    pub name: String,
}

impl Way {
    /// What is no longer alive does nothing more.
    pub async fn alive(&self) {
        if !self.world.lives(self.place, self.incarnation) {
            std::future::pending::<()>().await;
        }
    }
}

/// The port.
pub struct SimCoordinator(pub Way);

fn unreachable() -> CoordinatorError {
    CoordinatorError::Unreachable { endpoint: "simulated".to_owned(), why: "cut off".to_owned() }
}

impl SimCoordinator {
    async fn ask<T>(
        &self,
        what: &'static str,
        wakes: bool,
        operation: impl FnOnce(&mut MemoryModel, Moment) -> T + Send,
    ) -> Result<T, CoordinatorError> {
        let Way { world, place, name, .. } = &self.0;
        let way = world.way(*place, To::Coordinator);
        let Some(there) = way.there else {
            tokio::time::sleep(way.patience).await;
            self.0.alive().await;
            return Err(unreachable());
        };
        tokio::time::sleep(there).await;
        self.0.alive().await;
        let now = world.coordinator_time();
        let done = operation(&mut world.state().model, now);
        if wakes {
            world.log(name, what);
            world.changed.notify_waiters();
        }
        let Some(back) = way.back else {
            tokio::time::sleep(way.patience).await;
            self.0.alive().await;
            return Err(CoordinatorError::Unknown { endpoint: "simulated".to_owned(), limit: way.patience });
        };
        tokio::time::sleep(back).await;
        self.0.alive().await;
        Ok(done)
    }
}

struct SimWatch {
    way: Way,
    election: ElectionName,
    from: Revision,
}

#[async_trait]
impl ElectionWatch for SimWatch {
    async fn woken(&mut self) -> Result<(), CoordinatorError> {
        loop {
            self.way.alive().await;
            let world = &self.way.world;
            let changed = world.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if world.way(self.way.place, To::Coordinator).there.is_none() {
                return Err(unreachable());
            }
            let now = world.coordinator_time();
            let seen = world.state().model.changed_since(now, &self.election, self.from);
            if let Some(at) = seen {
                self.from = at.next();
                return Ok(());
            }
            // Told or not, the next thing is to look.
            let _looked = tokio::time::timeout(LOOK_AGAIN, changed).await;
        }
    }
}

#[async_trait]
impl Coordinator for SimCoordinator {
    async fn grant(&self, ttl: Duration) -> Result<Grant, CoordinatorError> {
        self.ask("grant", false, |model, now| model.grant(now, ttl)).await
    }

    async fn renew(&self, lease: LeaseId) -> Result<RenewOutcome, CoordinatorError> {
        self.ask("renew", false, |model, now| model.renew(now, lease)).await
    }

    async fn revoke(&self, lease: LeaseId) -> Result<RevokeOutcome, CoordinatorError> {
        self.ask("revokes its lease", true, |model, now| model.revoke(now, lease)).await
    }

    async fn read_election(&self, election: &ElectionName) -> Result<ElectionState, CoordinatorError> {
        self.ask("read", false, |model, now| model.read(now, election)).await
    }

    async fn campaign(&self, campaign: &Campaign) -> Result<CampaignOutcome, CoordinatorError> {
        let Way { world, name, .. } = &self.0;
        let mut won = None;
        let outcome = self
            .ask("campaigns", true, |model, now| {
                let outcome = model.campaign(now, campaign);
                match &outcome {
                    CampaignOutcome::Won { .. } => {
                        let record = &campaign.record;
                        let (term, tenure_id) = (record.term, record.tenure_id);
                        won = Some(Claim { election: record.election.clone(), term, tenure_id });
                    }
                    CampaignOutcome::Lost(_) | CampaignOutcome::LeaseGone => {}
                }
                outcome
            })
            .await;
        if let Some(claim) = won {
            world.touch(name, Touch::Won { claim });
        }
        outcome
    }

    async fn resign(&self, election: &ElectionName, won: Win) -> Result<ResignOutcome, CoordinatorError> {
        self.ask("resigns", true, |model, now| model.resign(now, election, won)).await
    }

    async fn transfer(&self, transfer: &Transfer) -> Result<TransferOutcome, CoordinatorError> {
        self.ask("transfers", true, |model, now| model.transfer(now, transfer)).await
    }

    async fn watch(&self, election: &ElectionName, from: Revision) -> Result<Box<dyn ElectionWatch>, CoordinatorError> {
        self.ask("watch", false, |_, _| ()).await?;
        Ok(Box::new(SimWatch { way: self.0.clone(), election: election.clone(), from }))
    }

    async fn put_replica(&self, record: &ReplicaRecord) -> Result<RegisterOutcome, CoordinatorError> {
        self.ask("put_replica", false, |model, now| model.put_replica(now, record)).await
    }

    async fn list_replicas(&self) -> Result<Vec<ReplicaRecord>, CoordinatorError> {
        self.ask("list", false, |model, now| model.replicas(now).into_iter().take(MOST_REPLICAS).collect()).await
    }

    async fn read_accepted(&self, election: &ElectionName) -> Result<Option<String>, CoordinatorError> {
        self.ask("read_accepted", false, |model, _| model.accepted(election)).await
    }

    async fn put_accepted(
        &self,
        election: &ElectionName,
        won: Win,
        accepted: &str,
    ) -> Result<AcceptedOutcome, CoordinatorError> {
        self.ask("put_accepted", false, |model, now| model.put_accepted(now, election, won, accepted)).await
    }

    async fn lift_term(&self, election: &ElectionName, least: Term) -> Result<Term, CoordinatorError> {
        self.ask("lifts the term", true, |model, now| model.lift_term(now, election, least)).await
    }

    async fn members(&self) -> Members {
        let reachable = self.0.world.way(self.0.place, To::Coordinator).there.is_some();
        Members { reachable: u32::from(reachable), total: 1 }
    }
}

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
    LeaderRecord, LeaseId, Members, RegisterOutcome, RenewOutcome, ReplicaRecord, ResignOutcome, Revision,
    RevokeOutcome, Transfer, TransferOutcome, Win,
};

use tokio::sync::oneshot;

use crate::breaks::Break;
use crate::facts::Touch;
use crate::world::{Delivery, Landing, To, World};

/// How often a quiet watch looks whether a lease has lapsed: nobody tells it.
const LOOK_AGAIN: Duration = Duration::from_millis(200);
/// Of a hundred messages that may arrive twice, so many do.
const TWICE: u32 = 5;
/// The second time is less than so much later, milliseconds.
const MOST_LATER: u64 = 1_500;

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

    /// Sends a message: `after` so long it arrives, whoever lives then. What a tenure sends can be called back with `of`.
    pub fn send(&self, after: Duration, of: Option<Claim>, landing: Landing) {
        self.world.send(Delivery { from: Some((self.place, self.incarnation)), of, landing }, after);
    }

    /// What comes back; never, where the message was called back.
    pub async fn heard<T>(&self, answered: oneshot::Receiver<T>) -> T {
        match answered.await {
            Ok(done) => done,
            Err(_) => std::future::pending().await,
        }
    }
}

fn claim_of(record: &LeaderRecord) -> Claim {
    Claim { election: record.election.clone(), term: record.term, tenure_id: record.tenure_id }
}

/// The port.
pub struct SimCoordinator(pub Way);

fn unreachable() -> CoordinatorError {
    CoordinatorError::Unreachable { endpoint: "simulated".to_owned(), why: "cut off".to_owned() }
}

impl SimCoordinator {
    async fn ask<T: Send + 'static>(
        &self,
        what: &'static str,
        wakes: bool,
        operation: impl FnOnce(&mut MemoryModel, Moment) -> T + Send + 'static,
    ) -> Result<T, CoordinatorError> {
        let (answer, answered) = oneshot::channel();
        let landing = self.landing(what, wakes, operation, |_, _| {}, answer);
        self.over(self.0.world.way(self.0.place, To::Coordinator), landing, answered).await
    }

    /// The same with an operation that may arrive once more, later: nobody hears of what comes of that. `seen` is shown what
    /// came of each, before anybody else is.
    async fn ask_maybe_twice<T: Send + 'static>(
        &self,
        what: &'static str,
        wakes: bool,
        operation: impl FnOnce(&mut MemoryModel, Moment) -> T + Clone + Send + 'static,
        seen: impl FnOnce(&World, &T) + Clone + Send + 'static,
    ) -> Result<T, CoordinatorError> {
        let (world, place) = (&self.0.world, self.0.place);
        self.0.alive().await;
        let way = world.way(place, To::Coordinator);
        let twice = world.state().rng.u32(0..100) < TWICE;
        if let (true, Some(there)) = (twice, way.there) {
            world.count("messages doubled");
            let after = there + Duration::from_millis(world.state().rng.u64(50..MOST_LATER));
            let (unheard, _nobody) = oneshot::channel();
            self.0.send(after, None, self.landing(what, wakes, operation.clone(), seen.clone(), unheard));
        }
        let (answer, answered) = oneshot::channel();
        self.over(way, self.landing(what, wakes, operation, seen, answer), answered).await
    }

    /// There and back. Once it has left, a message arrives, whatever becomes of its sender; the answer alone needs somebody to
    /// come back to.
    async fn over<T>(
        &self,
        way: crate::world::Way,
        landing: Landing,
        answered: oneshot::Receiver<T>,
    ) -> Result<T, CoordinatorError> {
        self.0.alive().await;
        let Some(there) = way.there else {
            tokio::time::sleep(way.patience).await;
            self.0.alive().await;
            return Err(unreachable());
        };
        self.0.send(there, None, landing);
        let done = self.0.heard(answered).await;
        let Some(back) = way.back else {
            tokio::time::sleep(way.patience).await;
            self.0.alive().await;
            return Err(CoordinatorError::Unknown { endpoint: "simulated".to_owned(), limit: way.patience });
        };
        tokio::time::sleep(back).await;
        self.0.alive().await;
        Ok(done)
    }

    /// One in how many of a lease's seconds count.
    fn part_of_leases(&self) -> u32 {
        if self.0.world.state().broken == Break::LeasesLapseEarly { 3 } else { 1 }
    }

    /// What happens once a message has arrived.
    fn landing<T: Send + 'static>(
        &self,
        what: &'static str,
        wakes: bool,
        operation: impl FnOnce(&mut MemoryModel, Moment) -> T + Send + 'static,
        seen: impl FnOnce(&World, &T) + Send + 'static,
        answer: oneshot::Sender<T>,
    ) -> Landing {
        let name = self.0.name.clone();
        Box::new(move |world| {
            let now = world.coordinator_time();
            let done = operation(&mut world.state().model, now);
            seen(world, &done);
            if wakes {
                world.log(&name, what);
                world.changed.notify_waiters();
            }
            // The one that asked may be gone.
            drop(answer.send(done));
        })
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
        // What it says is the whole, and what it keeps a part.
        let part = self.part_of_leases();
        self.ask("grant", false, move |model, now| Grant { ttl, ..model.grant(now, ttl / part) }).await
    }

    async fn renew(&self, lease: LeaseId) -> Result<RenewOutcome, CoordinatorError> {
        let part = self.part_of_leases();
        let forgotten = self.0.world.state().broken == Break::LeasesForgotten && lease.0 % 2 == 0;
        let renew = move |model: &mut MemoryModel, now: Moment| {
            if forgotten {
                model.revoke(now, lease);
            }
            match model.renew(now, lease) {
                RenewOutcome::Renewed { ttl } => RenewOutcome::Renewed { ttl: ttl * part },
                RenewOutcome::Gone => RenewOutcome::Gone,
            }
        };
        self.ask_maybe_twice("renews", false, renew, |_, _| {}).await
    }

    async fn revoke(&self, lease: LeaseId) -> Result<RevokeOutcome, CoordinatorError> {
        self.ask("revokes its lease", true, move |model, now| model.revoke(now, lease)).await
    }

    async fn read_election(&self, election: &ElectionName) -> Result<ElectionState, CoordinatorError> {
        let election = election.clone();
        self.ask("read", false, move |model, now| model.read(now, &election)).await
    }

    async fn campaign(&self, campaign: &Campaign) -> Result<CampaignOutcome, CoordinatorError> {
        let (campaign, name, claim) = (campaign.clone(), self.0.name.clone(), claim_of(&campaign.record));
        let seen = move |world: &World, outcome: &CampaignOutcome| {
            if let CampaignOutcome::Won { .. } = outcome {
                world.touch(&name, Touch::Won { claim });
            }
        };
        self.ask_maybe_twice("campaigns", true, move |model, now| model.campaign(now, &campaign), seen).await
    }

    async fn resign(&self, election: &ElectionName, won: Win) -> Result<ResignOutcome, CoordinatorError> {
        let election = election.clone();
        self.ask_maybe_twice("resigns", true, move |model, now| model.resign(now, &election, won), |_, _| {}).await
    }

    async fn transfer(&self, transfer: &Transfer) -> Result<TransferOutcome, CoordinatorError> {
        let (transfer, name, claim) = (transfer.clone(), self.0.name.clone(), claim_of(&transfer.record));
        let seen = move |world: &World, outcome: &TransferOutcome| {
            if let TransferOutcome::Transferred { .. } = outcome {
                world.count("handed over");
                world.touch(&name, Touch::Won { claim });
            }
        };
        self.ask_maybe_twice("transfers", true, move |model, now| model.transfer(now, &transfer), seen).await
    }

    async fn watch(&self, election: &ElectionName, from: Revision) -> Result<Box<dyn ElectionWatch>, CoordinatorError> {
        self.ask("watch", false, |_, _| ()).await?;
        Ok(Box::new(SimWatch { way: self.0.clone(), election: election.clone(), from }))
    }

    async fn put_replica(&self, record: &ReplicaRecord) -> Result<RegisterOutcome, CoordinatorError> {
        let record = record.clone();
        self.ask("put_replica", false, move |model, now| model.put_replica(now, &record)).await
    }

    async fn list_replicas(&self) -> Result<Vec<ReplicaRecord>, CoordinatorError> {
        self.ask("list", false, |model, now| model.replicas(now).into_iter().take(MOST_REPLICAS).collect()).await
    }

    async fn read_accepted(&self, election: &ElectionName) -> Result<Option<String>, CoordinatorError> {
        let election = election.clone();
        self.ask("read_accepted", false, move |model, _| model.accepted(&election)).await
    }

    async fn put_accepted(
        &self,
        election: &ElectionName,
        won: Win,
        accepted: &str,
    ) -> Result<AcceptedOutcome, CoordinatorError> {
        let (election, accepted) = (election.clone(), accepted.to_owned());
        self.ask("put_accepted", false, move |model, now| model.put_accepted(now, &election, won, &accepted)).await
    }

    async fn lift_term(&self, election: &ElectionName, least: Term) -> Result<Term, CoordinatorError> {
        let election = election.clone();
        self.ask("lifts the term", true, move |model, now| model.lift_term(now, &election, least)).await
    }

    async fn members(&self) -> Members {
        let reachable = self.0.world.way(self.0.place, To::Coordinator).there.is_some();
        Members { reachable: u32::from(reachable), total: 1 }
    }
}

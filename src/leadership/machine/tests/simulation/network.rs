//! What the coordinator does with what reaches it.

use super::super::*;
use super::world::{Delivery, NODES, World, millis};
use crate::leadership::record::{Campaign, CampaignOutcome, ReplicaRecord};

impl World {
    /// A request has reached the coordinator, maybe long after its sender gave up.
    pub(super) fn serve(&mut self, index: usize, command: Command) {
        let now = self.now;
        let event = match command {
            Command::Grant { op, ttl } => Event::Granted(op, Ok(self.coordinator.grant(now, ttl))),
            Command::Renew { op, lease } => Event::Renewed(op, Ok(self.coordinator.renew(now, lease))),
            Command::Revoke { op, lease } => {
                self.coordinator.revoke(now, lease);
                Event::Revoked(op)
            }
            Command::Read { op, election } => {
                let state = self.coordinator.read(now, &election);
                Event::Read(op, election, Ok(state))
            }
            Command::Resign { op, election, won } => {
                let outcome = self.coordinator.resign(now, &election, won);
                Event::Resigned(op, election, Ok(outcome))
            }
            Command::Transfer { op, claim, to, won, term_revision } => {
                let own = replica(&self.nodes[index].id);
                let heirs = self.coordinator.replicas(now).into_iter().filter(|heir| {
                    heir.replica_id != own
                        && heir.eligible.contains(&claim.election)
                        && to.as_ref().is_none_or(|to| *to == heir.replica_id)
                });
                let outcome = heirs.map(|heir| (heir.replica_id, heir.lease_id)).next().map_or(
                    HandedOver::ToNobody,
                    |(heir, lease)| {
                        let record = record_of(&claim, heir.as_str(), lease);
                        match self.coordinator.transfer(now, &Transfer { won, term_revision, record }) {
                            TransferOutcome::Transferred { .. } => HandedOver::To(heir),
                            TransferOutcome::NotTransferred { .. } => HandedOver::ToNobody,
                        }
                    },
                );
                Event::Transferred(op, claim.election, Ok(outcome))
            }
            Command::Campaign { op, claim, lease, vacancy, term_revision } => {
                let record = record_of(&claim, &self.nodes[index].id, lease);
                let campaign = Campaign { record: record.clone(), vacancy, term_revision };
                let outcome = match self.coordinator.campaign(now, &campaign) {
                    CampaignOutcome::Won { revision } => Campaigned::Won { revision, record },
                    CampaignOutcome::Lost(state) => Campaigned::Lost(state),
                    CampaignOutcome::LeaseGone => Campaigned::LeaseGone,
                };
                Event::Campaigned(op, claim.election, Ok(outcome))
            }
            Command::Register { op, lease, eligible } => {
                let record = ReplicaRecord {
                    replica_id: replica(&self.nodes[index].id),
                    lease_id: lease,
                    host: String::new(),
                    address: String::new(),
                    version: String::new(),
                    schedule_fingerprint: String::new(),
                    eligible,
                };
                Event::Registered(op, Ok(self.coordinator.put_replica(now, &record)))
            }
            Command::Survey { op } => {
                let (listed, me) = (self.coordinator.replicas(now), replica(&self.nodes[index].id));
                let own = listed.iter().find(|found| found.replica_id == me);
                let own = own.map(|own| (own.lease_id, own.eligible.clone()));
                Event::Surveyed(op, Ok(Survey { replicas: u32::try_from(listed.len()).expect("few"), own }))
            }
            other => panic!("not for the coordinator: {other:?}"),
        };
        for node in 0..NODES {
            self.wake_watches(node);
        }
        if !self.lost(index) {
            let delay = self.delay();
            self.schedule(index, delay, Delivery::Answer(event.clone()));
        }
        if self.stormy() && self.rng.u32(0..20) == 0 {
            let delay = millis(self.rng.u64(0..3000));
            self.schedule(index, delay, Delivery::Answer(event));
        }
    }
}

/// What the sender is told when nobody answers in time.
pub(super) fn failure(command: &Command) -> Event {
    match command.clone() {
        Command::Grant { op, .. } => Event::Granted(op, Err(Failed)),
        Command::Renew { op, .. } => Event::Renewed(op, Err(Failed)),
        Command::Revoke { op, .. } => Event::Revoked(op),
        Command::Read { op, election } => Event::Read(op, election, Err(Failed)),
        Command::Campaign { op, claim, .. } => Event::Campaigned(op, claim.election, Err(Failed)),
        Command::Resign { op, election, .. } => Event::Resigned(op, election, Err(Failed)),
        Command::Transfer { op, claim, .. } => Event::Transferred(op, claim.election, Err(Failed)),
        Command::Register { op, .. } => Event::Registered(op, Err(Failed)),
        Command::Survey { op } => Event::Surveyed(op, Err(Failed)),
        other => panic!("not for the coordinator: {other:?}"),
    }
}

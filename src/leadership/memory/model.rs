//! A coordinator as a value: leases that lapse, keys with revisions, the conditional operations. Pure; time is a parameter.
//!
//! Simulators run machines against it without any runtime; [`MemoryCoordinator`](super::MemoryCoordinator) puts the port in
//! front of it. It has to pass the same contract as etcd.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::domain::{ElectionName, Moment, ReplicaId, Term};
use crate::leadership::record::{
    AcceptedOutcome, Campaign, CampaignOutcome, ElectionState, Grant, LeaderRecord, LeaseId, RegisterOutcome,
    RenewOutcome, ReplicaRecord, ResignOutcome, Revision, RevokeOutcome, SeenLeader, Transfer, TransferOutcome,
    Vacancy, Win,
};

/// The keys of one election.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
struct Keys {
    leader: Option<SeenLeader>,
    term: Option<(Term, Revision)>,
    accepted: Option<String>,
    /// The revision of the leader key's last change, its deletion included.
    changed_at: Option<Revision>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Lease {
    ttl: Duration,
    lapses_at: Moment,
}

/// The coordinator's whole content.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct MemoryModel {
    revision: i64,
    last_lease: i64,
    leases: BTreeMap<LeaseId, Lease>,
    elections: BTreeMap<ElectionName, Keys>,
    replicas: BTreeMap<ReplicaId, ReplicaRecord>,
}

impl MemoryModel {
    fn change(&mut self) -> Revision {
        self.revision += 1;
        Revision(self.revision)
    }

    /// Lets lapse what has lapsed by `now`. Every operation does so first.
    pub fn lapse(&mut self, now: Moment) {
        let gone: Vec<_> = self.leases.iter().filter(|(_, lease)| lease.lapses_at <= now).map(|(id, _)| *id).collect();
        for lease in gone {
            self.drop_lease(lease);
        }
    }

    fn drop_lease(&mut self, lease: LeaseId) -> bool {
        if self.leases.remove(&lease).is_none() {
            return false;
        }
        let revision = self.change();
        self.replicas.retain(|_, record| record.lease_id != lease);
        for keys in self.elections.values_mut() {
            if keys.leader.as_ref().is_some_and(|leader| leader.lease == lease) {
                keys.leader = None;
                keys.changed_at = Some(revision);
            }
        }
        true
    }

    /// See [`Coordinator::grant`](super::super::Coordinator::grant).
    pub fn grant(&mut self, now: Moment, ttl: Duration) -> Grant {
        self.lapse(now);
        self.last_lease += 1;
        let lease = LeaseId(self.last_lease);
        self.leases.insert(lease, Lease { ttl, lapses_at: now + ttl });
        Grant { lease, ttl }
    }

    /// See [`Coordinator::renew`](super::super::Coordinator::renew).
    pub fn renew(&mut self, now: Moment, lease: LeaseId) -> RenewOutcome {
        self.lapse(now);
        match self.leases.get_mut(&lease) {
            Some(held) => {
                held.lapses_at = now + held.ttl;
                RenewOutcome::Renewed { ttl: held.ttl }
            }
            None => RenewOutcome::Gone,
        }
    }

    /// See [`Coordinator::revoke`](super::super::Coordinator::revoke).
    pub fn revoke(&mut self, now: Moment, lease: LeaseId) -> RevokeOutcome {
        self.lapse(now);
        if self.drop_lease(lease) { RevokeOutcome::Revoked } else { RevokeOutcome::Gone }
    }

    /// See [`Coordinator::read_election`](super::super::Coordinator::read_election).
    pub fn read(&mut self, now: Moment, election: &ElectionName) -> ElectionState {
        self.lapse(now);
        self.state(election)
    }

    fn state(&self, election: &ElectionName) -> ElectionState {
        let keys = self.elections.get(election);
        let (term, term_revision) = keys.and_then(|keys| keys.term).unwrap_or((Term::NONE, Revision::ABSENT));
        ElectionState {
            leader: keys.and_then(|keys| keys.leader.clone()),
            term,
            term_revision,
            read_at: Revision(self.revision),
        }
    }

    fn put_both(&mut self, record: &LeaderRecord) -> Revision {
        let revision = self.change();
        let keys = self.elections.entry(record.election.clone()).or_default();
        keys.term = Some((record.term, revision));
        keys.leader = Some(SeenLeader { record: Some(record.clone()), revision, lease: record.lease_id });
        keys.changed_at = Some(revision);
        revision
    }

    /// See [`Coordinator::campaign`](super::super::Coordinator::campaign).
    pub fn campaign(&mut self, now: Moment, campaign: &Campaign) -> CampaignOutcome {
        self.lapse(now);
        let found = self.state(&campaign.record.election);
        let vacant = match (campaign.vacancy, &found.leader) {
            (Vacancy::Absent, None) => true,
            (Vacancy::Leaseless(revision), Some(leader)) => {
                leader.revision == revision && leader.lease == LeaseId::NONE
            }
            (Vacancy::Absent, Some(_)) | (Vacancy::Leaseless(_), None) => false,
        };
        if !vacant || found.term_revision != campaign.term_revision {
            return CampaignOutcome::Lost(found);
        }
        if !self.leases.contains_key(&campaign.record.lease_id) {
            return CampaignOutcome::LeaseGone;
        }
        CampaignOutcome::Won { revision: self.put_both(&campaign.record) }
    }

    /// See [`Coordinator::resign`](super::super::Coordinator::resign).
    pub fn resign(&mut self, now: Moment, election: &ElectionName, won: Win) -> ResignOutcome {
        self.lapse(now);
        let found = self.state(election).leader;
        if found.as_ref().is_none_or(|leader| leader.win() != won) {
            return ResignOutcome::NotMine { found };
        }
        let revision = self.change();
        let keys = self.elections.entry(election.clone()).or_default();
        keys.leader = None;
        keys.changed_at = Some(revision);
        ResignOutcome::Resigned
    }

    /// See [`Coordinator::transfer`](super::super::Coordinator::transfer).
    pub fn transfer(&mut self, now: Moment, transfer: &Transfer) -> TransferOutcome {
        self.lapse(now);
        let found = self.state(&transfer.record.election);
        let mine = found.leader.as_ref().is_some_and(|leader| leader.win() == transfer.won);
        let there =
            self.replicas.get(&transfer.record.leader_id).is_some_and(|r| r.lease_id == transfer.record.lease_id);
        if mine && there && found.term_revision == transfer.term_revision {
            TransferOutcome::Transferred { revision: self.put_both(&transfer.record) }
        } else {
            TransferOutcome::NotTransferred { found }
        }
    }

    /// See [`Coordinator::put_replica`](super::super::Coordinator::put_replica).
    pub fn put_replica(&mut self, now: Moment, record: &ReplicaRecord) -> RegisterOutcome {
        self.lapse(now);
        if !self.leases.contains_key(&record.lease_id) {
            return RegisterOutcome::LeaseGone;
        }
        self.change();
        self.replicas.insert(record.replica_id.clone(), record.clone());
        RegisterOutcome::Registered
    }

    /// See [`Coordinator::list_replicas`](super::super::Coordinator::list_replicas).
    pub fn replicas(&mut self, now: Moment) -> Vec<ReplicaRecord> {
        self.lapse(now);
        self.replicas.values().cloned().collect()
    }

    /// See [`Coordinator::read_accepted`](super::super::Coordinator::read_accepted).
    #[must_use]
    pub fn accepted(&self, election: &ElectionName) -> Option<String> {
        self.elections.get(election).and_then(|keys| keys.accepted.clone())
    }

    /// See [`Coordinator::put_accepted`](super::super::Coordinator::put_accepted).
    pub fn put_accepted(&mut self, now: Moment, election: &ElectionName, won: Win, accepted: &str) -> AcceptedOutcome {
        self.lapse(now);
        let found = self.state(election).leader;
        if found.as_ref().is_none_or(|leader| leader.win() != won) {
            return AcceptedOutcome::NotLeader { found };
        }
        self.change();
        self.elections.entry(election.clone()).or_default().accepted = Some(accepted.to_owned());
        AcceptedOutcome::Noted
    }

    /// See [`Coordinator::lift_term`](super::super::Coordinator::lift_term).
    pub fn lift_term(&mut self, now: Moment, election: &ElectionName, least: Term) -> Term {
        self.lapse(now);
        let issued = self.state(election).term;
        if issued >= least {
            return issued;
        }
        let revision = self.change();
        self.elections.entry(election.clone()).or_default().term = Some((least, revision));
        least
    }

    /// The revision of the leader key's last change, if it is at least `from`: what a watch from there shows.
    pub fn changed_since(&mut self, now: Moment, election: &ElectionName, from: Revision) -> Option<Revision> {
        self.lapse(now);
        self.elections.get(election).and_then(|keys| keys.changed_at).filter(|at| *at >= from)
    }

    /// A person deletes the leader key.
    pub fn delete_leader_by_hand(&mut self, election: &ElectionName) {
        let revision = self.change();
        let keys = self.elections.entry(election.clone()).or_default();
        keys.leader = None;
        keys.changed_at = Some(revision);
    }

    /// A person puts a leader key without a lease.
    pub fn put_leaseless_leader_by_hand(&mut self, election: &ElectionName) {
        let revision = self.change();
        let keys = self.elections.entry(election.clone()).or_default();
        keys.leader = Some(SeenLeader { record: None, revision, lease: LeaseId::NONE });
        keys.changed_at = Some(revision);
    }

    /// An earlier content is put back, as by a restore. Leases are not named twice for it.
    pub fn restore(&mut self, earlier: Self) {
        let last_lease = self.last_lease;
        *self = Self { last_lease, ..earlier };
    }

    /// All is forgotten, as after a wipe. Revisions begin anew.
    pub fn wipe(&mut self) {
        let last_lease = self.last_lease;
        *self = Self { last_lease, ..Self::default() };
    }
}

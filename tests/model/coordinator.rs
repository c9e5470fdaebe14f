//! The coordinator: the product's own value of it, with what befalls a coordinator.

use std::collections::BTreeMap;
use std::time::Duration;

use bursar::domain::{Claim, ElectionName, Moment, ReplicaId, Term};
use bursar::leadership::machine::{Campaigned, Command, Event, HandedOver};
use bursar::leadership::memory::MemoryModel;
use bursar::leadership::record::{
    Campaign, CampaignOutcome, LeaderRecord, LeaseId, RenewOutcome, ReplicaRecord, ResignOutcome, Revision, Transfer,
    TransferOutcome, Win,
};

use crate::defect::Defect;
use crate::election::name;
use crate::kept::Kept;
use crate::replica::replica_id;

/// The coordinator, and what an onlooker knows of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Coordinator {
    model: Kept<MemoryModel>,
    /// An earlier state that it may be restored to.
    saved: Option<Kept<MemoryModel>>,
    /// It lets leases lapse this much after their time.
    pub behind: Duration,
    /// When each lease lapses, by its own clock.
    lapses: BTreeMap<LeaseId, Moment>,
    /// The last lease that it has given out.
    granted: LeaseId,
    /// The highest term that it has issued.
    issued: Term,
    /// It was wiped, restored, or a person edited a key.
    pub meddled: bool,
    /// A term was issued that was not above all that were issued before.
    pub issued_twice: bool,
    /// A successor's record was put.
    pub handed_over: bool,
}

impl Coordinator {
    /// An empty one.
    pub fn new() -> Self {
        Self {
            model: Kept::new(MemoryModel::default()),
            saved: None,
            behind: Duration::ZERO,
            lapses: BTreeMap::new(),
            granted: LeaseId::NONE,
            issued: Term::NONE,
            meddled: false,
            issued_twice: false,
            handed_over: false,
        }
    }

    /// The time by its own clock.
    fn clock(&self, now: Moment) -> Moment {
        now - self.behind
    }

    /// When the next lease lapses.
    pub fn next_lapse(&self, now: Moment) -> Option<Moment> {
        self.lapses.values().map(|at| *at + self.behind).filter(|at| *at > now).min()
    }

    /// Whether there is a leader key.
    pub fn leader(&self, now: Moment) -> Option<Revision> {
        let mut model = MemoryModel::clone(&self.model);
        model.read(self.clock(now), &name()).leader.map(|leader| leader.revision)
    }

    /// Since which revision a watch has something to tell.
    pub fn changed_since(&self, now: Moment, from: Revision) -> Option<Revision> {
        MemoryModel::clone(&self.model).changed_since(self.clock(now), &name(), from)
    }

    /// A replica puts its record on its lease. That is never late: a record that is only makes it no successor.
    pub fn register(&mut self, now: Moment, node: usize, lease: LeaseId) {
        let now = self.clock(now);
        self.model.change(|model| model.put_replica(now, &shown(node, lease)));
    }

    /// A request has reached it.
    pub fn serve(&mut self, now: Moment, node: usize, command: &Command, defect: Option<Defect>) -> Event {
        let now = self.clock(now);
        match command.clone() {
            Command::Grant { op, ttl } => {
                let grant = self.model.change(|model| model.grant(now, ttl));
                self.lapses.insert(grant.lease, now + ttl);
                self.granted = grant.lease;
                Event::Granted(op, Ok(grant))
            }
            Command::Renew { op, lease } => {
                let outcome = self.model.change(|model| model.renew(now, lease));
                match outcome {
                    RenewOutcome::Renewed { ttl } => self.lapses.insert(lease, now + ttl),
                    RenewOutcome::Gone => self.lapses.remove(&lease),
                };
                Event::Renewed(op, Ok(outcome))
            }
            Command::Revoke { op, lease } => {
                self.model.change(|model| model.revoke(now, lease));
                self.lapses.remove(&lease);
                Event::Revoked(op)
            }
            Command::Read { op, election } => {
                let state = self.model.change(|model| model.read(now, &election));
                Event::Read(op, election, Ok(state))
            }
            Command::Campaign { op, claim, lease, vacancy, term_revision } => {
                let record = record_of(&claim, node, lease);
                let campaign = Campaign { record: record.clone(), vacancy, term_revision };
                let outcome = match self.model.change(|model| model.campaign(now, &campaign)) {
                    CampaignOutcome::Won { revision } => {
                        self.issues(claim.term);
                        Campaigned::Won { revision, record }
                    }
                    CampaignOutcome::Lost(state) => Campaigned::Lost(state),
                    CampaignOutcome::LeaseGone => Campaigned::LeaseGone,
                };
                Event::Campaigned(op, claim.election, Ok(outcome))
            }
            Command::Resign { op, election, won } => {
                let outcome = self.model.change(|model| {
                    let whose = model.read(now, &election).leader.map(|leader| leader.win());
                    let any = defect == Some(Defect::ResignDeletesOthersKey);
                    model.resign(now, &election, whose.filter(|_| any).unwrap_or(won))
                });
                let outcome = match outcome {
                    ResignOutcome::Resigned => ResignOutcome::Resigned,
                    ResignOutcome::NotMine { found } => ResignOutcome::NotMine { found },
                };
                Event::Resigned(op, election, Ok(outcome))
            }
            Command::Transfer { op, claim, to, won, term_revision } => {
                let election = ElectionName::clone(&claim.election);
                Event::Transferred(op, election, Ok(self.transfer(now, node, &claim, to, won, term_revision, defect)))
            }
            other => unreachable!("{other:?} is not for the coordinator"),
        }
    }

    /// The successor's record is put, where it is there and everything is as it was seen.
    #[expect(clippy::too_many_arguments, reason = "the fields of one command")]
    fn transfer(
        &mut self,
        now: Moment,
        node: usize,
        claim: &Claim,
        to: Option<ReplicaId>,
        won: Win,
        term_revision: Revision,
        defect: Option<Defect>,
    ) -> HandedOver {
        let other = 1 - node;
        let named = to.unwrap_or_else(|| replica_id(other));
        let there = self.model.change(|model| model.replicas(now)).into_iter().find(|found| found.replica_id == named);
        let Some(heir) = there.filter(|_| named == replica_id(other)) else { return HandedOver::ToNobody };
        let term_revision = match defect {
            Some(Defect::SuccessorWithoutTermKey) => {
                self.model.change(|model| model.read(now, &claim.election)).term_revision
            }
            Some(_) | None => term_revision,
        };
        let transfer = Transfer { won, term_revision, record: record_of(claim, other, heir.lease_id) };
        match self.model.change(|model| model.transfer(now, &transfer)) {
            TransferOutcome::Transferred { .. } => {
                self.handed_over = true;
                self.issues(claim.term);
                HandedOver::To(named)
            }
            TransferOutcome::NotTransferred { .. } => HandedOver::ToNobody,
        }
    }

    /// A term is given out.
    fn issues(&mut self, term: Term) {
        self.issued_twice |= term <= self.issued && !self.meddled;
        self.issued = self.issued.max(term);
    }

    /// An operator lifts the term by so much: none up to there is issued any more.
    pub fn lift(&mut self, now: Moment, by: i64) {
        let now = self.clock(now);
        let least = Term::new(self.issued.get() + by).unwrap_or(self.issued);
        self.model.change(|model| model.lift_term(now, &name(), least));
        self.issued = least;
    }

    /// All of it is gone.
    pub fn wipe(&mut self) {
        self.model.change(MemoryModel::wipe);
        self.lapses.clear();
        self.meddled = true;
    }

    /// A backup is made, once.
    pub fn save(&mut self) {
        self.saved = Some(self.model.clone());
    }

    /// Whether there is a backup.
    pub const fn is_saved(&self) -> bool {
        self.saved.is_some()
    }

    /// The backup is put in its place. Leases in it have their time to live from here on; ids of leases are never given out
    /// twice.
    pub fn restore(&mut self, now: Moment) {
        let now = self.clock(now);
        let Some(saved) = self.saved.take() else { return };
        let last = self.granted;
        self.model = saved;
        self.lapses.clear();
        self.model.change(|model| {
            loop {
                let burnt = model.grant(now, Duration::from_secs(1)).lease;
                model.revoke(now, burnt);
                if burnt >= last {
                    break;
                }
            }
        });
        for lease in (1..=last.0).map(LeaseId) {
            let renewed = self.model.change(|model| model.renew(now, lease));
            if let RenewOutcome::Renewed { ttl } = renewed {
                self.lapses.insert(lease, now + ttl);
            }
        }
        self.meddled = true;
    }

    /// An operator deletes the leader key.
    pub fn delete_leader(&mut self) {
        self.model.change(|model| model.delete_leader_by_hand(&name()));
        self.meddled = true;
    }

    /// An operator puts a leader key without a lease.
    pub fn put_leaseless_leader(&mut self) {
        self.model.change(|model| model.put_leaseless_leader_by_hand(&name()));
        self.meddled = true;
    }
}

fn record_of(claim: &Claim, node: usize, lease: LeaseId) -> LeaderRecord {
    LeaderRecord {
        election: ElectionName::clone(&claim.election),
        leader_id: replica_id(node),
        tenure_id: claim.tenure_id,
        lease_id: lease,
        term: claim.term,
        host: String::new(),
        address: String::new(),
        version: String::new(),
        schedule_fingerprint: String::new(),
        won_at: None,
    }
}

/// A replica's record, on its lease.
fn shown(node: usize, lease: LeaseId) -> ReplicaRecord {
    ReplicaRecord {
        replica_id: replica_id(node),
        lease_id: lease,
        host: String::new(),
        address: String::new(),
        version: String::new(),
        schedule_fingerprint: String::new(),
        eligible: vec![name()],
    }
}

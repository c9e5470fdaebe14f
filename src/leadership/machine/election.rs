//! One election's state, and observing it: reading, watching, comparing.

use super::{Command, Failed, Machine, Note, OpId, Step, Timer};
use crate::domain::{Claim, ElectionName, Moment, ReplicaId, TenureId, Term};
use crate::leadership::reason::EndReason;
use crate::leadership::record::{ElectionState, LeaseId, SeenLeader, Vacancy, Win};

use super::EndMode;

/// An election as this replica stands in it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Election {
    pub(super) name: ElectionName,
    /// Why not, for people.
    pub(super) eligible: Result<(), String>,
    pub(super) phase: Phase,
    /// Since when it is in this phase.
    pub(super) since: Moment,
    /// The read that is waited for.
    pub(super) reading: Option<OpId>,
    /// Something happened after that read was sent: read again when it is answered.
    pub(super) read_again: bool,
    pub(super) read_failures: u32,
    pub(super) watching: bool,
    /// Watches in a row that ended without having woken anybody.
    pub(super) watch_failures: u32,
    /// What the last read showed.
    pub(super) seen: Option<ElectionState>,
    /// When the leader's end was first noticed; cleared by a leader.
    pub(super) vacant_since: Option<Moment>,
    /// When the watch last fired, if no read has followed yet.
    pub(super) woken_at: Option<Moment>,
    /// Tenures in a row that ended by own fault.
    pub(super) setbacks: u32,
    /// Whether it does not stand for now.
    pub(super) stands_back: bool,
    /// The tenure that ended last: its record is never taken up again.
    pub(super) last_ended: Option<TenureId>,
}

/// Where an election stands at this replica.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Phase {
    Observing,
    Waiting,
    ReadingFence,
    Campaigning { op: OpId },
    Settling,
    Leading(Tenure),
    Ending(Ending),
    Clearing { won: Win, op: Option<OpId>, failures: u32, heir: Heir },
}

/// A tenure that leads.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Tenure {
    pub(super) claim: Claim,
    pub(super) won: Win,
    pub(super) begun_at: Moment,
    /// When the end of the leader before was noticed.
    pub(super) vacant_since: Option<Moment>,
    pub(super) accepted: bool,
    pub(super) worked: bool,
}

/// A tenure that is being ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Ending {
    pub(super) tenure: Tenure,
    pub(super) mode: EndMode,
    pub(super) reason: EndReason,
    pub(super) ordered_at: Moment,
    /// Whether the key of its win is to be deleted when it has ended.
    pub(super) delete_key: bool,
    /// Who gets it then.
    pub(super) heir: Heir,
}

/// Who gets an election that is given up.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Heir {
    /// Whoever wins it.
    Nobody,
    /// Any other replica that may lead.
    Anybody,
    /// This one.
    Named(ReplicaId),
}

impl Phase {
    /// Whether something of a tenure may still go on.
    pub(super) const fn has_tenure(&self) -> bool {
        match self {
            Self::Leading(_) | Self::Ending(_) => true,
            Self::Observing
            | Self::Waiting
            | Self::ReadingFence
            | Self::Campaigning { .. }
            | Self::Settling
            | Self::Clearing { .. } => false,
        }
    }
}

impl Election {
    pub(super) fn new(name: ElectionName, now: Moment) -> Self {
        Self {
            name,
            eligible: Err("not yet known".to_owned()),
            phase: Phase::Observing,
            since: now,
            reading: None,
            read_again: false,
            read_failures: 0,
            watching: false,
            watch_failures: 0,
            seen: None,
            vacant_since: None,
            woken_at: None,
            setbacks: 0,
            stands_back: false,
            last_ended: None,
        }
    }

    pub(super) fn enter(&mut self, phase: Phase, now: Moment) {
        self.phase = phase;
        self.since = now;
    }

    /// The last term that the coordinator is known to have issued.
    pub(super) fn issued(&self) -> Term {
        self.seen.as_ref().map_or(Term::NONE, |seen| seen.term)
    }
}

impl Machine {
    pub(super) fn election(&mut self, name: &ElectionName) -> Option<&mut Election> {
        self.elections.get_mut(name)
    }

    /// Leaves whatever phase without a tenure for observing, and reads at once.
    pub(super) fn observe(&mut self, step: &mut Step, name: &ElectionName) {
        let Some(election) = self.election(name) else { return };
        if election.phase != Phase::Observing {
            election.enter(Phase::Observing, step.now);
        }
        election.reading = None;
        for timer in [Timer::Stand(name.clone()), Timer::Fence(name.clone()), Timer::Clear(name.clone())] {
            self.clear(&timer);
        }
        self.start_read(step, name);
    }

    pub(super) fn start_read(&mut self, step: &mut Step, name: &ElectionName) {
        self.clear(&Timer::Reread(name.clone()));
        let op = OpId(self.next_op + 1);
        let Some(election) = self.election(name) else { return };
        match election.phase {
            Phase::Campaigning { .. } | Phase::Clearing { .. } => return,
            Phase::Observing
            | Phase::Waiting
            | Phase::ReadingFence
            | Phase::Settling
            | Phase::Leading(_)
            | Phase::Ending(_) => {}
        }
        if election.reading.is_some() {
            election.read_again = true;
            return;
        }
        election.reading = Some(op);
        election.read_again = false;
        self.next_op += 1;
        step.push(Command::Read { op, election: name.clone() });
    }

    pub(super) fn woken(&mut self, step: &mut Step, name: &ElectionName) {
        let now = step.now;
        let Some(election) = self.election(name) else { return };
        election.watch_failures = 0;
        election.woken_at.get_or_insert(now);
        self.start_read(step, name);
    }

    pub(super) fn watch_ended(&mut self, step: &mut Step, name: &ElectionName) {
        let Some(election) = self.election(name) else { return };
        election.watching = false;
        election.watch_failures = election.watch_failures.saturating_add(1);
        let at = step.now + step.retry(election.watch_failures);
        let timer = Timer::Reread(name.clone());
        // Never later than it would have been read anyway.
        let at = self.timers.get(&timer).map_or(at, |planned| at.min(*planned));
        self.set(timer, at);
    }

    pub(super) fn read(
        &mut self,
        step: &mut Step,
        op: OpId,
        name: &ElectionName,
        outcome: Result<ElectionState, Failed>,
    ) {
        let reread_at = step.now + self.settings.ttl / 5;
        let Some(election) = self.election(name) else { return };
        if election.reading != Some(op) {
            return;
        }
        election.reading = None;
        let again = std::mem::take(&mut election.read_again);
        if let Ok(state) = outcome {
            election.read_failures = 0;
            self.set(Timer::Reread(name.clone()), reread_at);
            self.answered(step, true);
            self.compare(step, name, state);
        } else {
            election.read_failures = election.read_failures.saturating_add(1);
            let wait = step.retry(election.read_failures);
            self.set(Timer::Reread(name.clone()), step.now + wait);
            self.answered(step, false);
        }
        if again {
            self.start_read(step, name);
        }
    }

    /// Takes in a fresh state of an election, and keeps a watch on what comes after it.
    pub(super) fn compare(&mut self, step: &mut Step, name: &ElectionName, state: ElectionState) {
        let now = step.now;
        let own = state.leader.as_ref().and_then(|leader| self.own(leader));
        let lease = self.session.lease();
        let Some(election) = self.election(name) else { return };
        let woken_at = election.woken_at.take();
        if !election.watching {
            election.watching = true;
            step.push(Command::Watch { election: name.clone(), from: state.read_at.next() });
        }
        let leader = state.leader.clone();
        let before = election.seen.replace(state).and_then(|seen| seen.leader?.record);
        match &election.phase {
            Phase::Leading(tenure) => {
                let tenure = tenure.clone();
                self.compare_own(step, name, &tenure, leader.as_ref());
                return;
            }
            Phase::Ending(ending) => {
                let tenure = ending.tenure.clone();
                self.compare_own(step, name, &tenure, leader.as_ref());
                return;
            }
            Phase::Campaigning { .. } | Phase::Clearing { .. } => return,
            Phase::Observing | Phase::Waiting | Phase::ReadingFence | Phase::Settling => {}
        }
        match vacancy(leader.as_ref()) {
            None => {
                election.vacant_since = None;
                if election.phase != Phase::Observing {
                    election.enter(Phase::Observing, now);
                }
                self.clear(&Timer::Stand(name.clone()));
                self.clear(&Timer::Fence(name.clone()));
                match (own, leader) {
                    (Some(claim), Some(leader)) => self.own_record_found(step, name, claim, leader),
                    // Renewed with this session, it would never lapse, and everybody would wait for it.
                    (None, Some(leader)) if Some(leader.lease) == lease => {
                        step.note(Note::StrangeLeader { election: name.clone() });
                        self.give_up_key(step, name, leader.win());
                    }
                    (None, Some(SeenLeader { record: Some(leads), .. }))
                        if leads.leader_id != self.settings.me
                            && before.is_none_or(|before| before.tenure_id != leads.tenure_id) =>
                    {
                        step.note(Note::Follows { election: name.clone(), leader: leads.leader_id, term: leads.term });
                    }
                    (None, Some(_)) | (_, None) => {}
                }
            }
            Some(vacancy) => {
                if matches!(vacancy, Vacancy::Leaseless(_)) {
                    step.note(Note::LeaselessLeader { election: name.clone() });
                }
                election.vacant_since.get_or_insert(woken_at.unwrap_or(now));
                if election.phase == Phase::Settling {
                    election.enter(Phase::Observing, now);
                }
                // Where it stands already, what was read only brings the revisions up to date.
                if election.phase == Phase::Observing {
                    self.stand(step, name);
                }
            }
        }
    }

    /// Whether a leader key is one's own: one's id, and one's live lease, in the record and under the key.
    fn own(&self, leader: &SeenLeader) -> Option<Claim> {
        let lease = self.session.lease()?;
        let record = leader.record.as_ref()?;
        let on_it = record.lease_id == lease && leader.lease == lease;
        let own = record.leader_id == self.settings.me && (on_it || crate::mutant!("record.lease-not-compared"));
        own.then(|| Claim { election: record.election.clone(), term: record.term, tenure_id: record.tenure_id })
    }

    /// An own record without a tenure: a campaign whose answer was lost, or a transfer. It is taken up if this replica may
    /// lead, else given up.
    fn own_record_found(&mut self, step: &mut Step, name: &ElectionName, claim: Claim, leader: SeenLeader) {
        let may = self.may_lead(name);
        let won = leader.win();
        let Some(election) = self.election(name) else { return };
        let ended = election.last_ended == Some(claim.tenure_id);
        match leader.record {
            Some(record) if may && !ended && record.election == *name => {
                self.begin(step, claim, leader.revision, record, crate::leadership::reason::TransitionReason::Adopted);
            }
            Some(_) | None => self.give_up_key(step, name, won),
        }
    }
}

/// Whether nobody can be leading: no key, or one without a lease.
pub(super) fn vacancy(leader: Option<&SeenLeader>) -> Option<Vacancy> {
    match leader {
        None => Some(Vacancy::Absent),
        Some(leader) if leader.lease == LeaseId::NONE => Some(Vacancy::Leaseless(leader.revision)),
        Some(_) => None,
    }
}

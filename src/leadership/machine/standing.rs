//! Standing for an election: the short wait, the fence's term, the campaign, and when not to.

use std::time::Duration;

use super::election::{Phase, vacancy};
use super::{
    Campaigned, Command, FENCE_READ_LIMIT, FIRST_STAND_BACK, Failed, JITTER_PER_REPLICA, LONGEST_JITTER,
    LONGEST_STAND_BACK, Machine, Note, OpId, Step, Timer,
};
use crate::domain::{Claim, ElectionName, Term};
use crate::leadership::reason::{EndReason, TransitionReason};
use crate::leadership::record::Win;

impl Machine {
    /// Whether this replica may hold the election: a record found on its lease is taken up then.
    pub(super) fn may_lead(&self, name: &ElectionName) -> bool {
        let willing = !self.leaving.has_begun() && !self.cordoned && self.session.held().is_some();
        willing && self.elections.get(name).is_some_and(|e| e.eligible.is_ok() && !e.stands_back)
    }

    /// Whether it may try to win it now: not on a session in doubt.
    fn may_stand(&self, name: &ElectionName) -> bool {
        self.may_lead(name) && self.session.live_lease().is_some()
    }

    /// The place is free: waits a short random time, if this replica may stand at all.
    pub(super) fn stand(&mut self, step: &mut Step, name: &ElectionName) {
        if !self.may_stand(name) {
            return;
        }
        let most = (self.settings.ttl / 20).min(JITTER_PER_REPLICA * self.replicas).min(LONGEST_JITTER);
        self.set(Timer::Stand(name.clone()), step.now + step.up_to(most));
        let now = step.now;
        if let Some(election) = self.election(name) {
            election.enter(Phase::Waiting, now);
        }
    }

    pub(super) fn jitter_over(&mut self, step: &mut Step, name: &ElectionName) {
        let may = self.may_stand(name);
        let now = step.now;
        let Some(election) = self.election(name) else { return };
        if election.phase != Phase::Waiting {
            return;
        }
        if may {
            election.enter(Phase::ReadingFence, now);
            self.set(Timer::Fence(name.clone()), now + FENCE_READ_LIMIT);
            step.push(Command::ReadFence { election: name.clone() });
        } else {
            election.enter(Phase::Observing, now);
        }
    }

    /// The store did not say: stands down until the next read.
    pub(super) fn fence_unknown(&mut self, step: &mut Step, name: &ElectionName) {
        self.clear(&Timer::Fence(name.clone()));
        let wait = step.retry(u32::MAX);
        let now = step.now;
        let Some(election) = self.election(name) else { return };
        if election.phase == Phase::ReadingFence {
            election.enter(Phase::Observing, now);
            self.set(Timer::Reread(name.clone()), now + wait);
        }
    }

    pub(super) fn fence_read(&mut self, step: &mut Step, name: &ElectionName, term: Result<Term, String>) {
        let may = self.may_stand(name);
        let tenure_id = step.luck.tenure;
        let now = step.now;
        let op = OpId(self.next_op + 1);
        let lease = self.session.live_lease();
        let Some(election) = self.election(name) else { return };
        if election.phase != Phase::ReadingFence {
            return;
        }
        let (Ok(fence), true, Some(lease), Some(seen)) = (term, may, lease, election.seen.as_ref()) else {
            self.fence_unknown(step, name);
            return;
        };
        let Some(vacancy) = vacancy(seen.leader.as_ref()) else {
            self.fence_unknown(step, name);
            return;
        };
        let term_revision = seen.term_revision;
        let next =
            crate::mutant!("term.from-the-clock", instead of Term::next_after(seen.term, fence) => by_the_clock(now));
        let Some(term) = next else {
            step.note(Note::TermsUsedUp { election: name.clone() });
            self.fence_unknown(step, name);
            return;
        };
        // An earlier read would show a time before the campaign: its answer is not waited for any more.
        election.reading = None;
        election.read_again = false;
        election.enter(Phase::Campaigning { op }, now);
        self.next_op += 1;
        self.clear(&Timer::Fence(name.clone()));
        self.clear(&Timer::Reread(name.clone()));
        let claim = Claim { election: name.clone(), term, tenure_id };
        step.push(Command::Campaign { op, claim, lease, vacancy, term_revision });
    }

    pub(super) fn campaigned(
        &mut self,
        step: &mut Step,
        op: OpId,
        name: &ElectionName,
        outcome: Result<Campaigned, Failed>,
    ) {
        let now = step.now;
        let Some(election) = self.election(name) else { return };
        if election.phase != (Phase::Campaigning { op }) {
            return;
        }
        self.answered(step, outcome.is_ok());
        match outcome {
            Ok(Campaigned::Won { revision, record }) => {
                let claim = Claim { election: record.election.clone(), term: record.term, tenure_id: record.tenure_id };
                if self.may_lead(name) {
                    self.begin(step, claim, revision, record, TransitionReason::Won);
                } else {
                    self.give_up_key(step, name, Win { revision, lease: record.lease_id });
                }
            }
            Ok(Campaigned::Lost(state)) => {
                if let Some(election) = self.election(name) {
                    election.enter(Phase::Observing, now);
                }
                let reread_at = now + self.settings.ttl / 5;
                self.set(Timer::Reread(name.clone()), reread_at);
                self.compare(step, name, state);
            }
            Ok(Campaigned::LeaseGone) => self.lose_session(step, EndReason::LeaseGone),
            Err(Failed) => {
                if let Some(election) = self.election(name) {
                    election.enter(Phase::Settling, now);
                }
                crate::mutant!("campaign.unknown-taken-for-lost" => if let Some(election) = self.election(name) {
                    election.enter(Phase::Observing, now);
                    return;
                });
                self.start_read(step, name);
            }
        }
    }

    pub(super) fn set_eligible(&mut self, step: &mut Step, name: &ElectionName, eligible: Result<(), String>) {
        let Some(election) = self.election(name) else { return };
        if election.eligible == eligible {
            return;
        }
        let turned = election.eligible.is_ok() != eligible.is_ok();
        election.eligible = eligible;
        if !turned {
            return;
        }
        self.register_soon(step);
        if self.elections.get(name).is_some_and(|e| e.eligible.is_ok()) {
            self.reconsider(step, name);
        } else {
            self.step_down(step, name, super::EndMode::Abrupt, EndReason::Ineligible);
        }
    }

    pub(super) fn set_cordoned(&mut self, step: &mut Step, cordoned: bool) {
        if self.cordoned == cordoned {
            return;
        }
        self.cordoned = cordoned;
        self.register_soon(step);
        for name in self.names() {
            if cordoned {
                let drain = self.settings.drain;
                self.step_down(step, &name, super::EndMode::Planned { drain }, EndReason::Cordoned);
            } else {
                self.reconsider(step, &name);
            }
        }
    }

    /// Something that kept this replica from standing is over: looks again, at once.
    pub(super) fn reconsider(&mut self, step: &mut Step, name: &ElectionName) {
        if !self.may_stand(name) {
            return;
        }
        let Some(election) = self.election(name) else { return };
        if election.phase == Phase::Observing && election.reading.is_none() {
            self.start_read(step, name);
        }
    }

    /// Another tenure ended by own fault: does not stand for a growing time.
    pub(super) fn stand_back(&mut self, step: &mut Step, name: &ElectionName) {
        let luck = step.up_to(FIRST_STAND_BACK / 2);
        let Some(election) = self.election(name) else { return };
        election.setbacks = election.setbacks.saturating_add(1);
        election.stands_back = true;
        let time = stand_back_time(election.setbacks) + luck;
        self.set(Timer::StandBack(name.clone()), step.now + time);
        step.note(Note::StandsBack { election: name.clone(), time });
    }

    pub(super) fn stand_back_over(&mut self, step: &mut Step, name: &ElectionName) {
        if let Some(election) = self.election(name) {
            election.stands_back = false;
        }
        self.reconsider(step, name);
    }
}

/// What the mutant takes for a term.
#[cfg(feature = "chaos")]
fn by_the_clock(now: crate::domain::Moment) -> Option<Term> {
    i64::try_from(now.since_boot().as_secs()).ok().and_then(Term::new)
}

/// How long to stand back after so many tenures in a row that ended by own fault.
pub(super) fn stand_back_time(setbacks: u32) -> Duration {
    let doubled = FIRST_STAND_BACK * 2u32.saturating_pow(setbacks.saturating_sub(1).min(16));
    doubled.min(LONGEST_STAND_BACK)
}

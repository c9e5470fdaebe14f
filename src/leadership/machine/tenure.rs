//! A tenure's life: begun by a win, accepted by the store, at work, ending, its key deleted.

use super::election::{Ending, Heir, Phase, Tenure};
use super::{Command, EndMode, Failed, HandedOver, LONGEST_STAND_BACK, Machine, Note, OpId, Step, Timer};
use crate::domain::{Claim, ElectionName, ReplicaId, Term};
use crate::leadership::reason::{EndReason, ExitReason, TransitionReason};
use crate::leadership::record::{ElectionState, LeaderRecord, ResignOutcome, Revision, SeenLeader, Win};

impl Machine {
    pub(super) fn begin(
        &mut self,
        step: &mut Step,
        claim: Claim,
        won: Revision,
        record: LeaderRecord,
        reason: TransitionReason,
    ) {
        let Some(lease) = self.session.lease() else { return };
        let name = claim.election.clone();
        let now = step.now;
        let reread_at = now + self.settings.ttl / 5;
        let Some(election) = self.election(&name) else { return };
        let vacant_since = election.vacant_since.take();
        election.reading = None;
        election.read_again = false;
        let own = Win { revision: won, lease };
        let tenure =
            Tenure { claim: claim.clone(), won: own, begun_at: now, vacant_since, accepted: false, worked: false };
        election.enter(Phase::Leading(tenure), now);
        election.seen = Some(ElectionState {
            leader: Some(SeenLeader { record: Some(record.clone()), revision: won, lease }),
            term: claim.term,
            term_revision: won,
            read_at: won,
        });
        self.set(Timer::Reread(name.clone()), reread_at);
        let adopted = reason == TransitionReason::Adopted;
        step.push(Command::Begin { claim: claim.clone(), won, record, lease, adopted, vacant_since });
        step.note(Note::Transition { claim, reason });
        if let Some(since) = vacant_since {
            step.note(Note::ElectionTook { election: name, took: now.since(since) });
        }
    }

    /// The leading tenure of that claim. Reports of any other are late, and mean nothing.
    fn leading(&mut self, claim: &Claim) -> Option<&mut Tenure> {
        match &mut self.elections.get_mut(&claim.election)?.phase {
            Phase::Leading(tenure) if tenure.claim == *claim => Some(tenure),
            Phase::Leading(_)
            | Phase::Observing
            | Phase::Waiting
            | Phase::ReadingFence
            | Phase::Campaigning { .. }
            | Phase::Settling
            | Phase::Ending(_)
            | Phase::Clearing { .. } => None,
        }
    }

    pub(super) fn accepted(&mut self, step: &mut Step, claim: &Claim) {
        let now = step.now;
        let Some(tenure) = self.leading(claim) else { return };
        if tenure.accepted {
            return;
        }
        tenure.accepted = true;
        step.push(Command::Accept { claim: claim.clone() });
        if let Some(election) = self.election(&claim.election) {
            election.since = now;
        }
    }

    pub(super) fn first_work(&mut self, step: &mut Step, claim: &Claim) {
        let now = step.now;
        let Some(tenure) = self.leading(claim) else { return };
        if std::mem::replace(&mut tenure.worked, true) {
            return;
        }
        if let Some(since) = tenure.vacant_since {
            step.note(Note::TakeoverTook { election: claim.election.clone(), took: now.since(since) });
        }
    }

    pub(super) fn failed_promotion(&mut self, step: &mut Step, claim: &Claim) {
        self.own_end(step, claim, EndReason::PromotionFailed);
    }

    pub(super) fn fault(&mut self, step: &mut Step, claim: &Claim) {
        self.own_end(step, claim, EndReason::Fault);
    }

    pub(super) fn fenced(&mut self, step: &mut Step, claim: &Claim) {
        self.own_end(step, claim, EndReason::Fenced);
    }

    /// The tenure itself says that it cannot go on. One's own faults make one stand back; being overtaken does only where it
    /// comes again and again.
    fn own_end(&mut self, step: &mut Step, claim: &Claim, reason: EndReason) {
        if self.leading(claim).is_none() {
            return;
        }
        self.end(step, &claim.election, EndMode::Abrupt, reason, true);
        let Some(election) = self.election(&claim.election) else { return };
        if reason == EndReason::Fenced && election.setbacks == 0 {
            election.setbacks = 1;
        } else {
            self.stand_back(step, &claim.election);
        }
    }

    /// Ends a leading tenure.
    fn end(&mut self, step: &mut Step, name: &ElectionName, mode: EndMode, reason: EndReason, delete_key: bool) {
        let now = step.now;
        let budget = self.settings.teardown_budget;
        let Some(election) = self.election(name) else { return };
        let Phase::Leading(tenure) = &election.phase else { return };
        let tenure = tenure.clone();
        let claim = tenure.claim.clone();
        election.last_ended = Some(claim.tenure_id);
        if now.since(tenure.begun_at) >= LONGEST_STAND_BACK {
            election.setbacks = 0;
        }
        let heir = Heir::Nobody;
        election.enter(Phase::Ending(Ending { tenure, mode, reason, ordered_at: now, delete_key, heir }), now);
        let limit = match mode {
            EndMode::Planned { drain } => drain,
            EndMode::Abrupt => budget,
        };
        self.set(Timer::Teardown(name.clone()), now + limit);
        step.push(Command::End { claim: claim.clone(), mode, reason });
        step.note(Note::Transition { claim, reason: reason.into() });
    }

    /// Ends the tenure of that term as planned, for a successor.
    pub(super) fn hand_over(&mut self, step: &mut Step, name: &ElectionName, term: Term, to: Option<ReplicaId>) {
        let drain = self.settings.drain;
        let own = to.as_ref() == Some(&self.settings.me);
        let Some(election) = self.elections.get(name) else { return };
        let Phase::Leading(tenure) = &election.phase else { return };
        if own || tenure.claim.term != term || !tenure.accepted {
            return;
        }
        self.end(step, name, EndMode::Planned { drain }, EndReason::Transfer, true);
        if let Some(Phase::Ending(ending)) = self.election(name).map(|election| &mut election.phase) {
            ending.heir = to.map_or(Heir::Anybody, Heir::Named);
        }
    }

    /// A planned end waits no longer: from now on it has the teardown budget.
    fn hasten(&mut self, step: &mut Step, name: &ElectionName, reason: EndReason, keep_key: bool) {
        let at = step.now + self.settings.teardown_budget;
        let Some(election) = self.election(name) else { return };
        let Phase::Ending(ending) = &mut election.phase else { return };
        ending.delete_key &= !keep_key;
        if ending.mode == EndMode::Abrupt {
            return;
        }
        ending.mode = EndMode::Abrupt;
        let claim = ending.tenure.claim.clone();
        self.set(Timer::Teardown(name.clone()), at);
        step.push(Command::End { claim, mode: EndMode::Abrupt, reason });
    }

    /// Gives up an election for a reason that is not the tenure's own: ends a tenure, or stops standing.
    pub(super) fn step_down(&mut self, step: &mut Step, name: &ElectionName, mode: EndMode, reason: EndReason) {
        let Some(election) = self.elections.get(name) else { return };
        match election.phase {
            Phase::Leading(_) => self.end(step, name, mode, reason, true),
            Phase::Ending(_) => {
                if mode == EndMode::Abrupt {
                    self.hasten(step, name, reason, false);
                }
            }
            Phase::Waiting | Phase::ReadingFence => self.observe(step, name),
            // Of a campaign the answer comes first; a win is given up then.
            Phase::Campaigning { .. } | Phase::Settling | Phase::Observing | Phase::Clearing { .. } => {}
        }
    }

    /// The session is gone, and with it every key on its lease.
    pub(super) fn session_lost(&mut self, step: &mut Step, name: &ElectionName, reason: EndReason) {
        let Some(election) = self.elections.get(name) else { return };
        match election.phase {
            Phase::Leading(_) => self.end(step, name, EndMode::Abrupt, reason, false),
            Phase::Ending(_) => self.hasten(step, name, reason, true),
            Phase::Waiting
            | Phase::ReadingFence
            | Phase::Campaigning { .. }
            | Phase::Settling
            | Phase::Clearing { .. } => self.observe(step, name),
            Phase::Observing => {}
        }
    }

    /// A leader looks at its own key: gone, or not from its own win, ends that tenure and nothing else.
    pub(super) fn compare_own(
        &mut self,
        step: &mut Step,
        name: &ElectionName,
        tenure: &Tenure,
        leader: Option<&SeenLeader>,
    ) {
        let of_it = |leader: &SeenLeader| {
            let record = leader.record.as_ref();
            leader.win() == tenure.won && record.is_some_and(|record| record.tenure_id == tenure.claim.tenure_id)
        };
        let reason = match leader {
            Some(leader) if of_it(leader) => return,
            Some(_) => EndReason::LeaderKeyTaken,
            None => EndReason::LeaderKeyGone,
        };
        let Some(election) = self.elections.get(name) else { return };
        match election.phase {
            Phase::Leading(_) => self.end(step, name, EndMode::Abrupt, reason, false),
            Phase::Ending(_) => self.hasten(step, name, reason, true),
            Phase::Observing
            | Phase::Waiting
            | Phase::ReadingFence
            | Phase::Campaigning { .. }
            | Phase::Settling
            | Phase::Clearing { .. } => {}
        }
    }

    pub(super) fn ended(&mut self, step: &mut Step, claim: &Claim) {
        // A tenure that ends without having been told to has failed.
        if self.leading(claim).is_some() {
            self.own_end(step, claim, EndReason::Fault);
        }
        let now = step.now;
        let name = &claim.election;
        let Some(election) = self.elections.get(name) else { return };
        let Phase::Ending(ending) = &election.phase else { return };
        if ending.tenure.claim != *claim {
            return;
        }
        let (won, delete_key, took) = (ending.tenure.won, ending.delete_key, now.since(ending.ordered_at));
        let heir = ending.heir.clone();
        self.clear(&Timer::Teardown(name.clone()));
        step.push(Command::Forget { claim: claim.clone() });
        step.note(Note::TeardownTook { election: name.clone(), took });
        crate::mutant!("resign.revokes-the-lease" => if let Some(lease) = self.session.lease() {
            let op = self.op();
            step.push(Command::Revoke { op, lease });
        });
        if delete_key && self.session.held().is_some() && !crate::mutant!("resign.leaves-the-key") {
            self.give_up_key_to(step, name, won, heir);
        } else {
            self.observe(step, name);
        }
        self.give_back_stale_lease(step);
    }

    pub(super) fn teardown_overdue(&mut self, step: &mut Step, name: &ElectionName) {
        let Some(election) = self.elections.get(name) else { return };
        let Phase::Ending(ending) = &election.phase else { return };
        match ending.mode {
            EndMode::Planned { .. } => {
                let reason = ending.reason;
                self.hasten(step, name, reason, false);
            }
            EndMode::Abrupt => {
                step.note(Note::TeardownOverran { election: name.clone() });
                if !crate::mutant!("demotion.overrun-tolerated") {
                    step.push(Command::Exit(ExitReason::TeardownOverrun));
                }
            }
        }
    }

    /// Deletes a leader key of one's own win, and goes on trying until that is settled or the session is gone.
    pub(super) fn give_up_key(&mut self, step: &mut Step, name: &ElectionName, won: Win) {
        self.give_up_key_to(step, name, won, Heir::Nobody);
    }

    /// The same; an heir is tried first, once.
    fn give_up_key_to(&mut self, step: &mut Step, name: &ElectionName, won: Win, heir: Heir) {
        let now = step.now;
        let Some(election) = self.election(name) else { return };
        election.reading = None;
        election.read_again = false;
        election.enter(Phase::Clearing { won, op: None, failures: 0, heir }, now);
        for timer in [Timer::Stand(name.clone()), Timer::Fence(name.clone()), Timer::Reread(name.clone())] {
            self.clear(&timer);
        }
        self.send_resignation(step, name);
    }

    pub(super) fn send_resignation(&mut self, step: &mut Step, name: &ElectionName) {
        let next = OpId(self.next_op + 1);
        let tenure_id = step.luck.tenure;
        let Some(election) = self.election(name) else { return };
        // The fence stands at the term that is handed over, and the term key at it or above.
        let successor = election.seen.as_ref().and_then(|seen| {
            let term = Term::next_after(seen.term, seen.term)?;
            Some((Claim { election: name.clone(), term, tenure_id }, seen.term_revision))
        });
        let Phase::Clearing { won, op, heir, .. } = &mut election.phase else { return };
        if op.is_some() {
            return;
        }
        *op = Some(next);
        let to = match std::mem::replace(heir, Heir::Nobody) {
            Heir::Nobody => None,
            Heir::Anybody => Some(None),
            Heir::Named(replica) => Some(Some(replica)),
        };
        let won = *won;
        step.push(match (to, successor) {
            (Some(to), Some((claim, term_revision))) => Command::Transfer { op: next, claim, to, won, term_revision },
            (Some(_), None) | (None, _) => Command::Resign { op: next, election: name.clone(), won },
        });
        self.next_op += 1;
    }

    pub(super) fn resigned(
        &mut self,
        step: &mut Step,
        answered: OpId,
        name: &ElectionName,
        outcome: &Result<ResignOutcome, Failed>,
    ) {
        let leaving = self.leaving.has_begun();
        let Some(election) = self.election(name) else { return };
        let Phase::Clearing { op, failures, .. } = &mut election.phase else { return };
        if *op != Some(answered) {
            return;
        }
        *op = None;
        *failures = failures.saturating_add(1);
        let wait = step.retry(*failures);
        self.answered(step, outcome.is_ok());
        match outcome {
            Ok(ResignOutcome::Resigned | ResignOutcome::NotMine { .. }) => self.observe(step, name),
            // The revocation that follows deletes the key as well.
            Err(Failed) if leaving => self.observe(step, name),
            Err(Failed) => self.set(Timer::Clear(name.clone()), step.now + wait),
        }
    }

    /// Where nobody took it over, or it is not known, the key is deleted if it is still of one's own win.
    pub(super) fn transferred(
        &mut self,
        step: &mut Step,
        answered: OpId,
        name: &ElectionName,
        outcome: Result<HandedOver, Failed>,
    ) {
        let Some(election) = self.election(name) else { return };
        let Phase::Clearing { op, .. } = &mut election.phase else { return };
        if *op != Some(answered) {
            return;
        }
        *op = None;
        self.answered(step, outcome.is_ok());
        match outcome {
            Ok(HandedOver::To(successor)) => {
                step.note(Note::HandedOver { election: name.clone(), to: Some(successor) });
                self.observe(step, name);
            }
            Ok(HandedOver::ToNobody) | Err(Failed) => {
                step.note(Note::HandedOver { election: name.clone(), to: None });
                self.send_resignation(step, name);
            }
        }
    }
}

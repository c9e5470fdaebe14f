//! Which statement may be next, and what it does.

use super::{Action, At, Claim, Exclusive, Fencing, State, Writes, Wrong};
use crate::defect::Defect;

impl Fencing {
    pub(super) fn locks(self) -> bool {
        self.defect != Some(Defect::FenceReadWithoutLock)
    }

    pub(super) fn is_mine(self, found: Claim, mine: Claim) -> bool {
        found.term == mine.term && (found.tenure == mine.tenure || self.defect == Some(Defect::TermWithoutTenureId))
    }

    pub(super) fn commits(self, state: &mut State, at: usize) {
        let (mine, writes) = (self.claims[at], state.replicas[at].writes);
        let writes_at_all = writes.settles || writes.charges;
        if writes_at_all && (state.fence.term > mine.term || (state.fence.term == mine.term && state.fence != mine)) {
            state.wrong = Some(Wrong::S2);
        }
        if writes.settles && state.halted {
            state.wrong = Some(Wrong::S6);
        }
        if writes.settles {
            if state.settled[at] {
                state.wrong = Some(Wrong::S3);
            }
            state.settled[at] = true;
            state.both_worked[at] = true;
        }
        if writes.binds {
            state.bound = Some(u8::try_from(at).unwrap_or(u8::MAX));
        }
        state.posted += writes.posts;
        if state.posted > 1 {
            state.wrong = Some(Wrong::S3);
        }
        state.end(at);
    }

    /// The upsert: below one's own term, or one's own already, which is then to be said and not to be written again.
    pub(super) fn upsert(self, state: &mut State, at: usize) {
        let mine = self.claims[at];
        let lax = self.defect == Some(Defect::TermWithoutTenureId) && state.fence.term == mine.term;
        let in_force = state.fence == mine;
        let repeats = in_force && self.defect != Some(Defect::RepeatRefused);
        state.found_in_force |= repeats;
        let writes = state.fence.term < mine.term || (lax && !in_force);
        let replica = &mut state.replicas[at];
        replica.advance = if writes { Exclusive::Written } else { Exclusive::Done };
        replica.accepted = !writes && repeats;
    }

    /// The COMMIT of an advance is done by the server, whoever lives.
    fn land_advance(self, state: &mut State, at: usize) {
        let mine = self.claims[at];
        if state.fence.term == mine.term && state.fence.tenure != mine.tenure {
            state.wrong = Some(Wrong::S1);
        }
        state.fence = mine;
        let replica = &mut state.replicas[at];
        let told = replica.up && replica.advance == Exclusive::Committing;
        // Whoever was not told asks again.
        (replica.advance, replica.accepted) = (if told { Exclusive::Done } else { Exclusive::Idle }, told);
    }

    /// The conditional update of the unit, and the bind of the entry; both wait for whoever has the rows.
    pub(super) fn claim_unit(self, state: &mut State, at: usize) {
        if state.settled[at] {
            // Nothing due: rolled back.
            state.end(at);
            state.replicas[at].at = At::None;
            return;
        }
        let binds = state.bound.is_none();
        let posts = u8::from(binds || self.defect == Some(Defect::SumsBesideBind));
        let replica = &mut state.replicas[at];
        replica.writes = Writes { settles: true, binds, posts, charges: false };
        (replica.holds_rows, replica.at) = (true, At::Claimed);
    }

    pub(super) fn rolls_back(self, state: &mut State, at: usize) {
        state.left.failures -= 1;
        let replica = &mut state.replicas[at];
        replica.writes = Writes::default();
        (replica.holds_rows, replica.at) = (false, At::RolledBack);
        if self.defect == Some(Defect::SavepointBeforeFence) {
            replica.holds_shared = false;
        }
    }

    pub(super) fn replica_actions(self, state: &State, at: usize, actions: &mut Vec<Action>) {
        let replica = &state.replicas[at];
        let other = &state.replicas[1 - at];
        // What was sent to the server lands, whoever lives.
        if replica.lands {
            actions.push(Action::Land(at));
        }
        if matches!(replica.advance, Exclusive::Committing | Exclusive::Unanswered) {
            actions.push(Action::LandAdvance(at));
        }
        if !replica.up {
            return;
        }
        match replica.advance {
            Exclusive::Idle => actions.push(Action::AskAdvance(at)),
            Exclusive::Waiting if state.free_for_exclusive() => actions.push(Action::LockAdvance(at)),
            Exclusive::Holding => actions.push(Action::Upsert(at)),
            Exclusive::Written => actions.push(Action::CommitAdvance(at)),
            Exclusive::Committing if state.left.untold > 0 => actions.push(Action::NoAnswerToAdvance(at)),
            Exclusive::Unanswered => actions.push(Action::AdvanceAgain(at)),
            Exclusive::Waiting | Exclusive::Committing | Exclusive::Done => {}
        }
        if state.left.crashes > 0 {
            actions.push(Action::Crash(at));
        }
        match replica.at {
            At::None if replica.accepted && !state.settled[at] => actions.push(Action::Begin(at)),
            At::Begun if self.locks() => actions.push(Action::AskLock(at)),
            At::Begun => actions.push(Action::Read(at)),
            At::Locking(_) if !state.exclusive_held() => actions.push(Action::Lock(at)),
            At::Locked(_) => actions.push(Action::Read(at)),
            At::Entered if !other.holds_rows => actions.push(Action::ClaimUnit(at)),
            At::Claimed => {
                actions.push(Action::Commit(at));
                if state.left.failures > 0 {
                    actions.push(Action::Fail(at));
                }
            }
            At::RolledBack => actions.push(Action::Charge(at)),
            At::Committing if state.left.unknowns > 0 => actions.push(Action::NoAnswer(at)),
            At::Unanswered => actions.push(Action::ReadAgain(at)),
            At::None | At::Locking(_) | At::Entered | At::Committing | At::Fenced => {}
        }
    }

    pub(super) fn replica_step(self, state: &mut State, at: usize, action: &Action) {
        let mine = self.claims[at];
        let fence = state.fence;
        let halted = state.halted;
        let replica = &mut state.replicas[at];
        match action {
            Action::Begin(_) => replica.at = At::Begun,
            Action::AskLock(_) => replica.at = At::Locking(fence),
            Action::Lock(_) => {
                let At::Locking(before) = replica.at else { unreachable!("only who asked for the lock gets it") };
                let stale = self.defect == Some(Defect::FenceReadBeforeLock);
                (replica.holds_shared, replica.at) = (true, At::Locked(if stale { before } else { Claim::default() }));
            }
            Action::Read(_) => {
                let found = match replica.at {
                    At::Locked(before) if self.defect == Some(Defect::FenceReadBeforeLock) => before,
                    _ => fence,
                };
                let refused = halted && self.defect != Some(Defect::HaltNotInFence);
                if !self.is_mine(found, mine) {
                    replica.at = At::Fenced;
                } else if refused {
                    replica.at = At::None;
                } else {
                    replica.at = At::Entered;
                    return;
                }
                state.end(at);
            }
            Action::ClaimUnit(_) => self.claim_unit(state, at),
            Action::Fail(_) => self.rolls_back(state, at),
            Action::Charge(_) => {
                replica.writes.charges = true;
                (replica.lands, replica.at) = (true, At::Committing);
            }
            Action::Commit(_) => (replica.lands, replica.at) = (true, At::Committing),
            Action::Land(_) => {
                let answered = replica.at == At::Committing;
                if answered {
                    replica.at = At::None;
                }
                self.commits(state, at);
            }
            Action::NoAnswer(_) => {
                replica.at = At::Unanswered;
                state.left.unknowns -= 1;
            }
            // The old session is ended and seen gone, then the state is read again: by the same operation, called once more.
            Action::ReadAgain(_) => {
                replica.at = At::None;
                state.end(at);
            }
            Action::EndSession(_) => {
                replica.at = if replica.up { At::None } else { replica.at };
                state.end(at);
            }
            Action::AskAdvance(_) => replica.advance = Exclusive::Waiting,
            Action::LockAdvance(_) => replica.advance = Exclusive::Holding,
            Action::Upsert(_) => self.upsert(state, at),
            Action::CommitAdvance(_) => replica.advance = Exclusive::Committing,
            Action::LandAdvance(_) => self.land_advance(state, at),
            Action::NoAnswerToAdvance(_) => {
                replica.advance = Exclusive::Unanswered;
                state.left.untold -= 1;
            }
            Action::AdvanceAgain(_) | Action::EndExclusive(_) => replica.advance = Exclusive::Idle,
            Action::Crash(_) => {
                state.left.crashes -= 1;
                // The server finds the client gone some time; what was sent to it may land before that.
                (replica.up, replica.accepted) = (false, false);
                replica.at = At::None;
                if !matches!(replica.advance, Exclusive::Done | Exclusive::Committing | Exclusive::Unanswered) {
                    replica.advance = Exclusive::Idle;
                }
            }
            Action::AskHalt | Action::LockHalt | Action::Halt | Action::EndHalt | Action::Resume => {
                unreachable!("an operator's step is no replica's")
            }
        }
    }
}

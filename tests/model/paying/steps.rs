//! What each step does.

use bursar::domain::instruction::InstructionState;

use super::verdicts::Saw;
use super::{Action, Call, Paying, Stage, State, Step, Wrong};
use crate::defect::Defect;
use crate::receiver::{Answer, Reply, Request};
use crate::store::{Entered, Fate};

impl Paying {
    /// One step of a call.
    pub(super) fn call_step(self, state: &mut State, at: usize, place: usize, action: &Action) {
        let halted = state.store.halted;
        let entered = state.store.enter(state.tenures[at].term, true, self.rules());
        let called = state.tenures[at].calls[place];
        let came = |saw| Step::Came(self.came_to(state, called, state.tenures[at].term, saw));
        let away = matches!(action, Action::NoConnection(..));
        let came = if away {
            came(Saw::NoConnection)
        } else if matches!(action, Action::GiveUp(..) | Action::Hurry(..)) {
            came(Saw::Silence)
        } else {
            called.step
        };
        let tenure = &mut state.tenures[at];
        let (over, held, term) = (tenure.over, tenure.held, tenure.term);
        let call = &mut tenure.calls[place];
        match action {
            Action::Ask(..) => {
                (call.halted, call.late) = (halted, over);
                call.step = match self.defect {
                    _ if over => Step::Came(Fate::NotSent),
                    Some(Defect::HaltNotReread) => Step::Leaving,
                    Some(_) | None => Step::Asked,
                };
            }
            Action::ReadHalt(..) => match entered {
                Entered::Mine => call.step = Step::Cleared,
                Entered::Halted => call.step = Step::Came(Fate::NotSent),
                Entered::Fenced => {
                    call.step = Step::Came(Fate::NotSent);
                    state.refuse(at, self.defect);
                }
            },
            Action::Leave(..) => {
                let unasked = call.step == Step::Taken;
                call.late = over || held;
                call.step = if over && !unasked { Step::Came(Fate::NotSent) } else { Step::Leaving };
            }
            Action::Byte(..) => {
                call.step = Step::Sent;
                let call = *call;
                self.byte(state, term, call);
            }
            Action::NoConnection(..) => {
                call.step = came;
                state.left.away -= 1;
            }
            Action::GiveUp(..) => call.step = came,
            Action::Hurry(..) => {
                call.step = came;
                state.left.hurries -= 1;
            }
            other => unreachable!("{other:?} is no step of a call"),
        }
    }

    /// The first byte of a request, with all that an onlooker has to say to it.
    pub(super) fn byte(self, state: &mut State, term: u8, call: Call) {
        let row = &mut state.seen[usize::from(call.instruction)];
        let first = *row.key.get_or_insert(call.key);
        if first != call.key || (!self.receiver.idempotent && row.maybe_done > 0) {
            state.wrong = Some(Wrong::S4);
        }
        row.maybe_done += 1;
        if call.halted {
            state.wrong = Some(Wrong::S6);
        }
        if call.late {
            state.wrong = Some(Wrong::S7);
        }
        state.wire.push(Request { instruction: call.instruction, attempt: call.attempt, key: call.key, term });
    }

    pub(super) fn arrives(state: &mut State, place: usize, reply: Reply) {
        let request = state.wire.remove(place);
        state.highest = state.highest.max(request.term);
        match reply {
            Reply::Refused => {
                state.left.refusals -= 1;
                state.seen[usize::from(request.instruction)].refused = true;
            }
            Reply::Undone => state.left.undone -= 1,
            Reply::Redirected | Reply::Disagrees | Reply::NotNow | Reply::Failing { done: false } => {
                state.left.odd -= 1;
            }
            Reply::Paid | Reply::Failing { done: true } => {
                state.left.odd -= u8::from(reply != Reply::Paid);
                let row = &mut state.seen[usize::from(request.instruction)];
                row.paid += 1;
                if row.paid > 1 {
                    state.wrong = Some(Wrong::S4);
                }
            }
            Reply::Fenced => state.told_old_token = true,
            Reply::Known | Reply::StillRefused => {}
        }
        let (instruction, attempt, term) = (request.instruction, request.attempt, request.term);
        state.answers.push(Answer { instruction, attempt, term, reply });
    }

    pub(super) fn answered(self, state: &mut State, place: usize) {
        let answer = state.answers.remove(place);
        let waits = |call: &Call| {
            call.step == Step::Sent && (call.instruction, call.attempt) == (answer.instruction, answer.attempt)
        };
        let mut found = state.tenures.iter().enumerate().filter(|(_, tenure)| tenure.term == answer.term);
        let found = found.find_map(|(at, tenure)| Some((at, tenure.calls.iter().position(waits)?)));
        // Nobody waits for it any more.
        let Some((at, call)) = found else { return };
        let fate = self.came_to(state, state.tenures[at].calls[call], answer.term, Saw::Reply(answer.reply));
        state.tenures[at].calls[call].step = Step::Came(fate);
        if answer.reply.proves_undone() {
            state.seen[usize::from(answer.instruction)].maybe_done -= 1;
        }
    }

    pub(super) fn settle_call(self, state: &mut State, at: usize, place: usize, committed: Option<bool>) {
        let term = state.tenures[at].term;
        if state.store.enter(term, false, self.rules()) == Entered::Fenced {
            state.tenures[at].calls.remove(place);
            state.refuse(at, self.defect);
            return;
        }
        let call = state.tenures[at].calls[place];
        let Step::Came(fate) = call.step else { unreachable!("only what came to something is recorded") };
        let instruction = usize::from(call.instruction);
        if committed != Some(false) {
            state.store.record(term, instruction, call.attempt, fate, self.rules());
            let row = &state.store.rows[instruction];
            state.in_doubt_cleared |= row.in_doubt && row.state == InstructionState::Paid;
        }
        // Not answered, it is recorded once more: the record names its try.
        let dropped = committed.is_none() || self.defect == Some(Defect::UnknownAsFailure);
        if dropped {
            state.tenures[at].calls.remove(place);
        }
    }

    /// A step of promotion, or a take.
    pub(super) fn transact(self, state: &mut State, at: usize, action: &Action) {
        let term = state.tenures[at].term;
        match *action {
            Action::Advance(_) if state.store.advance(term) => state.tenures[at].stage = Stage::Advanced,
            Action::Advance(_) | Action::Sweep(_) => state.refuse(at, self.defect),
            Action::Recover(_) => match state.store.enter(term, false, self.rules()) {
                Entered::Mine | Entered::Halted => {
                    state.store.recover(term, self.rules());
                    state.tenures[at].stage = Stage::Working;
                }
                Entered::Fenced => state.refuse(at, self.defect),
            },
            Action::PutBack(_) => match state.store.enter(term, false, self.rules()) {
                Entered::Mine | Entered::Halted => {
                    let tenure = &mut state.tenures[at];
                    tenure.unanswered = false;
                    let in_hand: Vec<usize> = tenure.calls.iter().map(|call| usize::from(call.instruction)).collect();
                    state.store.put_back(term, &in_hand);
                }
                Entered::Fenced => {
                    state.tenures[at].unanswered = false;
                    state.refuse(at, self.defect);
                }
            },
            // It was told that it is over, or that this is in doubt, and begins something.
            Action::Take(..) if state.tenures[at].refused || state.tenures[at].held => state.wrong = Some(Wrong::S7),
            Action::Take(_, instruction) => match state.store.enter(term, true, self.rules()) {
                Entered::Mine => {
                    let call = self.take(state, term, instruction);
                    state.tenures[at].calls.push(call);
                }
                Entered::Fenced => state.refuse(at, self.defect),
                Entered::Halted => {}
            },
            Action::TakeUnknown(_, instruction, committed) => {
                state.left.unknowns -= 1;
                if committed {
                    self.take(state, term, instruction);
                }
                state.tenures[at].unanswered = self.defect != Some(Defect::UnknownAsFailure);
            }
            ref other => unreachable!("{other:?} is no transaction"),
        }
    }

    pub(super) fn fault(state: &mut State, action: &Action) {
        match *action {
            Action::Crash(at) => {
                state.left.crashes -= 1;
                state.tenures.remove(at);
            }
            Action::Lapse(at) => {
                state.left.lapses -= 1;
                state.tenures[at].over = true;
            }
            Action::Hold(at) => {
                state.left.holds -= 1;
                state.tenures[at].held = true;
                // Held in between, what was read of the halt is too old.
                for call in state.tenures[at].calls.iter_mut().filter(|call| call.step == Step::Cleared) {
                    call.step = Step::Taken;
                }
            }
            Action::Unhold(at) => state.tenures[at].held = false,
            Action::Halt => {
                state.left.halts -= 1;
                state.store.halted = true;
            }
            Action::Resume => {
                state.store.halted = false;
                for call in state.tenures.iter_mut().flat_map(|tenure| &mut tenure.calls) {
                    call.halted = false;
                }
            }
            Action::Doubled(place) => {
                state.left.doubles -= 1;
                let request = state.wire[place];
                state.wire.push(request);
            }
            Action::Lost(place) => {
                state.left.losses -= 1;
                state.wire.remove(place);
            }
            Action::AnswerLost(place) => {
                state.left.losses -= 1;
                state.answers.remove(place);
            }
            ref other => unreachable!("{other:?} is no fault"),
        }
    }
}

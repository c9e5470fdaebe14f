//! Which step may be next.

use super::{Action, Paying, Stage, State, Step};
use crate::defect::Defect;
use crate::receiver::Reply;

impl Paying {
    pub(super) fn tenure_actions(self, state: &State, at: usize, actions: &mut Vec<Action>) {
        let tenure = &state.tenures[at];
        let left = state.left;
        let held = tenure.held && self.defect != Some(Defect::GateOpenWhileSuspect);
        match tenure.stage {
            Stage::Won if !tenure.over => actions.push(Action::Advance(at)),
            Stage::Advanced if !tenure.over => actions.push(Action::Recover(at)),
            Stage::Working if !tenure.over && !held && !tenure.unanswered => {
                // Where it is not refused, a sweep changes nothing.
                if state.store.fence != tenure.term && !tenure.refused {
                    actions.push(Action::Sweep(at));
                }
                for instruction in (0..state.store.rows.len()).filter_map(|id| u8::try_from(id).ok()) {
                    let due = Self::may_be_taken(state, tenure, instruction);
                    if due && !(state.store.halted && self.defect != Some(Defect::HaltNotInFence)) {
                        actions.push(Action::Take(at, instruction));
                        if left.unknowns > 0 && state.store.fence == tenure.term {
                            actions.push(Action::TakeUnknown(at, instruction, true));
                            actions.push(Action::TakeUnknown(at, instruction, false));
                        }
                    }
                }
            }
            Stage::Won | Stage::Advanced | Stage::Working => {}
        }
        if tenure.unanswered && !tenure.over {
            actions.push(Action::PutBack(at));
        }
        for (place, call) in tenure.calls.iter().enumerate() {
            match call.step {
                Step::Taken if self.defect == Some(Defect::GateBeforeCommit) => actions.push(Action::Leave(at, place)),
                Step::Taken if !held => actions.push(Action::Ask(at, place)),
                Step::Asked => actions.push(Action::ReadHalt(at, place)),
                Step::Cleared if !held => actions.push(Action::Leave(at, place)),
                Step::Leaving => {
                    actions.push(Action::Byte(at, place));
                    if left.away > 0 {
                        actions.push(Action::NoConnection(at, place));
                    }
                }
                Step::Sent if !state.on_its_way(call, tenure.term) => actions.push(Action::GiveUp(at, place)),
                Step::Sent if left.hurries > 0 => actions.push(Action::Hurry(at, place)),
                Step::Came(_) => {
                    actions.push(Action::Record(at, place));
                    if left.unknowns > 0 && state.store.fence == tenure.term {
                        actions.push(Action::RecordUnknown(at, place, true));
                        actions.push(Action::RecordUnknown(at, place, false));
                    }
                }
                Step::Taken | Step::Cleared | Step::Sent => {}
            }
        }
        if tenure.over {
            actions.push(Action::TearDown(at));
        } else {
            if left.lapses > 0 {
                actions.push(Action::Lapse(at));
            }
            if left.holds > 0 && !tenure.held && tenure.stage == Stage::Working {
                actions.push(Action::Hold(at));
            }
        }
        if tenure.held {
            actions.push(Action::Unhold(at));
        }
        if left.crashes > 0 {
            actions.push(Action::Crash(at));
        }
    }

    pub(super) fn network_actions(self, state: &State, actions: &mut Vec<Action>) {
        let left = state.left;
        for (place, request) in state.wire.iter().enumerate() {
            let seen = state.seen[usize::from(request.instruction)];
            for reply in self.receiver.replies(*request, state.highest, seen.paid > 0, seen.refused) {
                let allowed = match reply {
                    Reply::Refused => left.refusals > 0,
                    Reply::Undone => left.undone > 0,
                    Reply::Redirected | Reply::Disagrees | Reply::NotNow | Reply::Failing { .. } => left.odd > 0,
                    Reply::Paid | Reply::Known | Reply::StillRefused | Reply::Fenced => true,
                };
                if allowed {
                    actions.push(Action::Arrives(place, reply));
                }
            }
            if left.losses > 0 {
                actions.push(Action::Lost(place));
            }
            if left.doubles > 0 {
                actions.push(Action::Doubled(place));
            }
        }
        for place in 0..state.answers.len() {
            actions.push(Action::Answered(place));
            if left.losses > 0 {
                actions.push(Action::AnswerLost(place));
            }
        }
    }
}

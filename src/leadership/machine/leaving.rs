//! Leaving: tenures end as planned, their keys are deleted, then the lease is revoked, then the thread may end.

use super::election::Phase;
use super::session::Session;
use super::{Command, EndMode, LEAVE_LIMIT, Machine, OpId, Step, Timer};
use crate::leadership::reason::EndReason;
use crate::leadership::record::LeaseId;

/// How far leaving has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Leaving {
    No,
    /// Tenures are being ended.
    Draining,
    /// The lease is being revoked.
    Revoking {
        op: OpId,
    },
    /// Over. Nothing is answered any more.
    Left,
}

impl Leaving {
    pub(super) const fn has_begun(self) -> bool {
        match self {
            Self::No => false,
            Self::Draining | Self::Revoking { .. } | Self::Left => true,
        }
    }
}

impl Machine {
    pub(super) fn drain(&mut self, step: &mut Step) {
        if self.leaving.has_begun() {
            return;
        }
        self.leaving = Leaving::Draining;
        for timer in [Timer::Grant, Timer::Survey, Timer::Register] {
            self.clear(&timer);
        }
        let drain = self.settings.drain;
        for name in self.names() {
            self.step_down(step, &name, EndMode::Planned { drain }, EndReason::Drain);
        }
    }

    /// Once no tenure is left and no key to delete, gives the lease back.
    pub(super) fn go_on_leaving(&mut self, step: &mut Step) {
        if self.leaving != Leaving::Draining {
            return;
        }
        let busy = self.elections.values().any(|election| match election.phase {
            Phase::Leading(_) | Phase::Ending(_) | Phase::Clearing { .. } => true,
            // A campaign under way needs no waiting for: its key goes with the lease, and without it nothing is put.
            Phase::Observing | Phase::Waiting | Phase::ReadingFence | Phase::Campaigning { .. } | Phase::Settling => {
                false
            }
        });
        if busy {
            return;
        }
        match self.session.lease() {
            Some(lease) => self.revoke_and_leave(step, lease),
            None => self.leave(step),
        }
    }

    fn revoke_and_leave(&mut self, step: &mut Step, lease: LeaseId) {
        let op = self.op();
        self.leaving = Leaving::Revoking { op };
        self.session = Session::None { lost: false, failures: 0 };
        step.push(Command::Close { lease });
        step.push(Command::Revoke { op, lease });
        self.timers.clear();
        self.set(Timer::Leave, step.now + LEAVE_LIMIT);
    }

    pub(super) fn revoked(&mut self, step: &mut Step, answered: OpId) {
        if self.leaving == (Leaving::Revoking { op: answered }) {
            self.leave(step);
        }
    }

    pub(super) fn leave(&mut self, step: &mut Step) {
        self.leaving = Leaving::Left;
        self.timers.clear();
        step.push(Command::Finished);
    }
}

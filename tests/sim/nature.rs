//! What a scenario holds and what it does not: the judge asks more of one in which less goes wrong.

use bursar::domain::ElectionName;

use crate::scenario::{Act, Hand, Scenario};
use crate::world::To;

impl Scenario {
    fn has(&self, kind: impl Fn(&Act) -> bool) -> bool {
        self.acts.iter().any(|(_, act)| kind(act))
    }

    /// Whether the schedule changes.
    pub fn is_edited(&self) -> bool {
        self.has(|act| matches!(act, Act::Edit { .. }))
    }

    /// Whether the store's clock is stepped.
    pub fn steps_the_clock(&self) -> bool {
        self.has(|act| matches!(act, Act::StepStore { .. }))
    }

    /// Whether receivers are out of reach, or slow, at times.
    pub fn troubles_receivers(&self) -> bool {
        self.has(|act| match act {
            Act::Cut { to, .. } | Act::CutAll { to, .. } | Act::Slow { to, .. } | Act::Deaf { to, .. } => {
                *to == To::Receiver
            }
            Act::ReceiverAway { .. } => true,
            _ => false,
        })
    }

    /// Whether somebody works on the coordinator by hand, or it forgets.
    pub fn is_meddled_with(&self) -> bool {
        self.has(|act| {
            matches!(
                act,
                Act::DeleteLeader { .. }
                    | Act::LeaselessLeader { .. }
                    | Act::Coordinator(Hand::Wipe | Hand::Restore | Hand::Lapse)
            )
        })
    }

    /// Whether nothing can cost anybody a session.
    pub fn sessions_are_safe(&self) -> bool {
        let costs = |act: &Act| match act {
            Act::Pause { .. } => true,
            Act::Cut { to, .. } | Act::CutAll { to, .. } | Act::Slow { to, .. } | Act::Deaf { to, .. } => {
                *to == To::Coordinator
            }
            _ => false,
        };
        !self.is_meddled_with() && !self.has(costs)
    }

    /// Elections that have jobs, whatever edits there are.
    pub fn worked_in(&self) -> &[ElectionName] {
        &self.elections
    }
}

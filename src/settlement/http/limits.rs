//! What all that is sent to one origin by this process shares: how many requests are on the wire, how many leave in a second, and
//! the wait that the receiver asked for (429 and 503 with `Retry-After`; of this process's memory, no stop that is on record). Where several jobs
//! send to it, the strictest limits of those that did so lately hold for all: they are the receiver's.
//!
//! Invariant: whoever came first goes first.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::pace::Pace;
use crate::clock;
use crate::domain::Moment;
use crate::domain::outside::ReceiverDefinition;

/// How long the limits of a job hold after its last request.
const IN_USE: Duration = Duration::from_mins(1);

/// The limits of a definition: requests per second, and on the wire.
type Own = (Option<u32>, u32);

/// What one origin's requests share.
#[derive(Debug, Default)]
pub(super) struct Limits {
    state: Mutex<State>,
    /// Whoever waits for a place, in the order in which they came; the first waits for `freed`.
    turn: tokio::sync::Mutex<()>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// Limits, and when somebody last came with them.
    in_use: BTreeMap<Own, Moment>,
    on_the_wire: u32,
    pace: Pace,
    /// Nothing leaves before this: the receiver asked for it.
    quiet_until: Moment,
}

impl State {
    fn strictest(&mut self, own: Own, now: Moment) -> Own {
        self.in_use.insert(own, now);
        self.in_use.retain(|_, last| now.since(*last) < IN_USE);
        let per_second = self.in_use.keys().filter_map(|(per_second, _)| *per_second).min();
        let at_once = self.in_use.keys().map(|(_, at_once)| *at_once).min().unwrap_or(1);
        (per_second, at_once)
    }
}

/// A request's place on the wire, given back when it is dropped.
#[derive(Debug)]
pub(super) struct Place<'a>(&'a Limits);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.state().on_the_wire -= 1;
        self.0.freed.notify_one();
    }
}

fn own(rules: &ReceiverDefinition) -> Own {
    (rules.max_per_second, rules.max_in_flight.max(1))
}

impl Limits {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a place on the wire; answers it, and how long the request waits for its turn then.
    pub(super) async fn enter(&self, rules: &ReceiverDefinition) -> (Place<'_>, Duration) {
        let _turn = self.turn.lock().await;
        loop {
            if let Some(turn) = self.try_enter(own(rules), clock::boottime()) {
                return (Place(self), turn);
            }
            self.freed.notified().await;
        }
    }

    fn try_enter(&self, own: Own, now: Moment) -> Option<Duration> {
        let mut state = self.state();
        let (per_second, at_once) = state.strictest(own, now);
        if state.on_the_wire >= at_once {
            return None;
        }
        state.on_the_wire += 1;
        Some(per_second.map_or(Duration::ZERO, |per_second| state.pace.take(now, per_second)))
    }

    /// The receiver asks for a wait: nothing leaves for it before it is over.
    pub(super) fn be_quiet(&self, until: Moment) {
        let mut state = self.state();
        state.quiet_until = state.quiet_until.max(until);
    }

    /// How much of that wait is left.
    pub(super) fn quiet_for(&self, now: Moment) -> Option<Duration> {
        Some(self.state().quiet_until.since(now)).filter(|wait| !wait.is_zero())
    }

    /// Requests by these rules that could go on the wire now.
    pub(super) fn free(&self, rules: &ReceiverDefinition) -> usize {
        let mut state = self.state();
        let (_, at_once) = state.strictest(own(rules), clock::boottime());
        usize::try_from(at_once.saturating_sub(state.on_the_wire)).unwrap_or(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_strictest_limits_of_those_that_came_lately_hold_for_all() {
        let limits = Limits::default();
        let at = |seconds| Moment::after_boot(Duration::from_secs(seconds));
        assert!(limits.try_enter((None, 3), at(1)).is_some());
        assert!(limits.try_enter((None, 2), at(2)).is_some());
        assert_eq!(limits.try_enter((None, 3), at(3)), None, "the other job's limit is two");
        drop(Place(&limits));
        assert!(limits.try_enter((None, 3), at(4)).is_some());
        // A minute after its last request, a job's limits are nobody's any more.
        assert!(limits.try_enter((None, 3), at(70)).is_some());
        assert_eq!(limits.try_enter((None, 3), at(70)), None);
    }

    #[test]
    fn the_longest_wait_that_was_asked_for_holds_for_all() {
        let limits = Limits::default();
        let at = |seconds| Moment::after_boot(Duration::from_secs(seconds));
        assert_eq!(limits.quiet_for(at(5)), None);
        limits.be_quiet(at(60));
        limits.be_quiet(at(30));
        assert_eq!(limits.quiet_for(at(20)), Some(Duration::from_secs(40)));
        assert_eq!(limits.quiet_for(at(60)), None, "it is over");
    }

    #[test]
    fn a_pace_is_kept_across_jobs() {
        let limits = Limits::default();
        let at = Moment::after_boot(Duration::from_secs(1));
        assert_eq!(limits.try_enter((Some(10), 9), at), Some(Duration::ZERO));
        assert_eq!(limits.try_enter((None, 9), at), Some(Duration::from_millis(100)));
        assert_eq!(limits.try_enter((Some(4), 9), at), Some(Duration::from_millis(200)));
        assert_eq!(limits.try_enter((Some(10), 9), at), Some(Duration::from_millis(450)));
    }
}

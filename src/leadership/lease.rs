//! The lease window: until when a replica may believe in its session, and when to renew it.
//!
//! Invariants:
//! - The window is counted from the moment *before* the last successful renewal was sent, so it ends before the coordinator
//!   can let the lease lapse, by at least the teardown budget (River's leader elector calls this the trust window).
//! - It only ever moves forward, and only by an answer: a late answer to an earlier renewal moves nothing back.
//!
//! Deliberately absent: any claim about safety. A window is for liveness; the fence decides who may write.

use std::time::Duration;

use crate::domain::Moment;

/// Renewals are no more frequent than this, however short the TTL.
pub const SHORTEST_RENEWAL: Duration = Duration::from_secs(1);

/// How long one attempt at the coordinator may take, sending and answer together.
pub const ATTEMPT_LIMIT: Duration = Duration::from_secs(1);

/// Renewals per TTL.
const RENEWALS_PER_TTL: u32 = 5;

/// How often a lease of this TTL is renewed: every fifth of it, at most once a second.
#[must_use]
pub fn renewal_interval(ttl: Duration) -> Duration {
    (ttl / RENEWALS_PER_TTL).max(SHORTEST_RENEWAL)
}

/// The window of one lease.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Window {
    proven_at: Moment,
    ttl: Duration,
    teardown_budget: Duration,
}

impl Window {
    /// The window of a lease whose grant was sent at `sent_at` and answered with `ttl`.
    #[must_use]
    pub const fn new(sent_at: Moment, ttl: Duration, teardown_budget: Duration) -> Self {
        Self { proven_at: sent_at, ttl, teardown_budget }
    }

    /// Takes in a successful renewal, sent at `sent_at` and answered with `ttl`. An answer to an earlier sending than the one
    /// already counted changes nothing.
    pub fn renewed(&mut self, sent_at: Moment, ttl: Duration) {
        if sent_at >= self.proven_at {
            self.proven_at = sent_at;
            self.ttl = ttl;
        }
    }

    /// From this moment on the session is lost: sending of the last successful renewal + TTL granted − teardown budget.
    #[must_use]
    pub fn deadline(&self) -> Moment {
        self.proven_at + self.ttl.saturating_sub(self.teardown_budget)
    }

    /// From this moment on the session is suspect unless another renewal succeeded: the next one was due, and had its whole
    /// attempt. Never after the deadline.
    #[must_use]
    pub fn overdue_at(&self) -> Moment {
        (self.proven_at + self.interval() + ATTEMPT_LIMIT).min(self.deadline())
    }

    /// When the next renewal is to be sent.
    #[must_use]
    pub fn renew_at(&self) -> Moment {
        self.proven_at + self.interval()
    }

    /// Time between renewals.
    #[must_use]
    pub fn interval(&self) -> Duration {
        renewal_interval(self.ttl)
    }

    /// The TTL last granted.
    #[must_use]
    pub const fn ttl(&self) -> Duration {
        self.ttl
    }

    /// Time left until the deadline.
    #[must_use]
    pub fn remaining(&self, now: Moment) -> Duration {
        self.deadline().since(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(ms: u64) -> Moment {
        Moment::after_boot(Duration::from_millis(ms))
    }

    #[test]
    fn renewals_are_five_per_ttl_but_at_most_one_a_second() {
        assert_eq!(renewal_interval(Duration::from_secs(10)), Duration::from_secs(2));
        assert_eq!(renewal_interval(Duration::from_secs(5)), Duration::from_secs(1));
        assert_eq!(renewal_interval(Duration::from_secs(2)), Duration::from_secs(1));
    }

    #[test]
    fn the_window_counts_from_the_sending() {
        let mut window = Window::new(at(1000), Duration::from_secs(5), Duration::from_secs(1));
        assert_eq!(window.deadline(), at(5000));
        assert_eq!(window.renew_at(), at(2000));
        assert_eq!(window.overdue_at(), at(3000));
        window.renewed(at(2000), Duration::from_secs(5));
        assert_eq!(window.deadline(), at(6000));
        assert_eq!(window.remaining(at(5500)), Duration::from_millis(500));
        assert_eq!(window.remaining(at(9000)), Duration::ZERO);
    }

    proptest! {
        #[test]
        fn a_window_never_outlives_the_lease_it_was_proven_by(
            sendings in proptest::collection::vec((0u64..100_000, 0u64..30_000), 1..40),
            budget in 0u64..5_000,
        ) {
            let budget = Duration::from_millis(budget);
            let (first, ttl) = sendings[0];
            let mut window = Window::new(at(first), Duration::from_millis(ttl), budget);
            let mut latest = (at(first), Duration::from_millis(ttl));
            for (sent, ttl) in sendings {
                let before = window.clone();
                window.renewed(at(sent), Duration::from_millis(ttl));
                if at(sent) >= latest.0 {
                    latest = (at(sent), Duration::from_millis(ttl));
                } else {
                    prop_assert_eq!(&window, &before, "a late answer moved the window");
                }
                let lapses = latest.0 + latest.1;
                prop_assert!(window.deadline() <= lapses);
                if latest.1 >= budget {
                    prop_assert_eq!(window.deadline() + budget, lapses);
                }
                prop_assert!(window.overdue_at() <= window.deadline());
            }
        }
    }
}

//! A time and a luck for one thread, given by a simulator: not compiled into a release.
//!
//! Invariant: while it is on, nothing on this thread sees the machine's clock or its randomness through [`crate::clock`];
//! the same seed and the same times give the same answers.

use std::cell::Cell;

use chrono::{DateTime, TimeDelta, Utc};
use uuid::Uuid;

use crate::domain::Moment;

thread_local! {
    static SOURCE: Cell<Option<fn() -> Moment>> = const { Cell::new(None) };
}

/// The simulated wall clock at boot: any fixed time will do, it is for showing only.
const WALL_AT_BOOT: i64 = 1_800_000_000;

/// From now on this thread has the time that `source` says, and the luck of that seed.
pub fn start(source: fn() -> Moment, seed: u64) {
    SOURCE.set(Some(source));
    fastrand::seed(seed);
}

/// This thread has the machine's time and luck again.
pub fn stop() {
    SOURCE.set(None);
    fastrand::seed(super::random_id().as_u64_pair().0);
}

/// Whether this thread's time is simulated.
#[must_use]
pub fn is_on() -> bool {
    SOURCE.get().is_some()
}

pub(super) fn now() -> Option<Moment> {
    SOURCE.get().map(|source| source())
}

pub(super) fn wall() -> Option<DateTime<Utc>> {
    let passed = TimeDelta::from_std(now()?.since_boot()).ok()?;
    DateTime::from_timestamp(WALL_AT_BOOT, 0)?.checked_add_signed(passed)
}

pub(super) fn random_id() -> Uuid {
    Uuid::from_u64_pair(super::random_u64(), super::random_u64())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::clock;

    #[test]
    fn a_seed_gives_the_same_luck_and_the_source_the_time() {
        let source: fn() -> Moment = || Moment::after_boot(Duration::from_secs(7));
        let draw = || (clock::random_u64(), clock::random_id(), clock::boottime(), clock::wall());
        start(source, 1);
        let first = draw();
        start(source, 1);
        assert_eq!(draw(), first);
        start(source, 2);
        assert_ne!(draw(), first);
        assert_eq!(first.2, source());
        stop();
        assert_ne!(clock::boottime(), source());
    }
}

//! The only place that asks for the time or draws randomness. Everything else is handed both, so that tests own them.
//!
//! Deliberately absent: the wall clock for anything that is decided. Leadership counts in boot time; business time is the
//! store's. [`wall`] is for showing only.
//!
//! In the test build a thread can be given a time and a luck of its own (`simulated`): a simulator that runs replicas on
//! one thread says what time it is for each.

use std::time::Duration;

use chrono::{DateTime, Utc};
use rustix::time::{ClockId, Timespec, clock_gettime};
use uuid::Uuid;

use crate::domain::Moment;

#[cfg(feature = "chaos")]
pub mod simulated;

fn moment(time: Timespec) -> Moment {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u32::try_from(time.tv_nsec).unwrap_or(0);
    Moment::after_boot(Duration::new(seconds, nanos))
}

/// `CLOCK_BOOTTIME`: counts through a suspend, is not stepped with the wall clock.
#[must_use]
pub fn boottime() -> Moment {
    #[cfg(feature = "chaos")]
    if let Some(now) = simulated::now() {
        return now;
    }
    moment(clock_gettime(ClockId::Boottime))
}

/// `CLOCK_MONOTONIC`: stands still through a suspend. Only compared with [`boottime`], to find out that the machine slept.
#[must_use]
pub fn monotonic() -> Moment {
    #[cfg(feature = "chaos")]
    if let Some(now) = simulated::now() {
        return now;
    }
    moment(clock_gettime(ClockId::Monotonic))
}

/// This machine's wall clock, to be shown and nothing else: its skew against the store's, and coming ticks in `check`.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "the one place that reads the wall clock, for showing")]
pub fn wall() -> DateTime<Utc> {
    #[cfg(feature = "chaos")]
    if let Some(now) = simulated::wall() {
        return now;
    }
    Utc::now()
}

/// A random identity.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "the one place that draws randomness")]
pub fn random_id() -> Uuid {
    #[cfg(feature = "chaos")]
    if simulated::is_on() {
        return simulated::random_id();
    }
    Uuid::new_v4()
}

/// A random 64-bit number, for jitter.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "the one place that draws randomness")]
pub fn random_u64() -> u64 {
    fastrand::u64(..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boot_time_goes_on() {
        let first = boottime();
        assert!(boottime() >= first && first > Moment::BOOT);
        assert!(monotonic() > Moment::BOOT);
        assert_ne!(random_id(), random_id());
    }
}

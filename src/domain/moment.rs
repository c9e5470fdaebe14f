//! A point on the boot-time clock: what leadership counts in.

use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

/// Time since boot, suspended time included (`CLOCK_BOOTTIME`), in nanoseconds. Never wall-clock time; comparable within
/// one machine and one boot only. Pure code is handed moments; only `clock` reads them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Moment(u64);

impl Moment {
    /// The boot itself.
    pub const BOOT: Self = Self(0);

    /// A moment that long after boot; saturates at the range's end (584 years).
    #[must_use]
    pub fn after_boot(time: Duration) -> Self {
        Self(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
    }

    /// Time since boot.
    #[must_use]
    pub const fn since_boot(self) -> Duration {
        Duration::from_nanos(self.0)
    }

    /// Time from `earlier` to `self`; zero where `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Moment {
    type Output = Self;
    fn add(self, time: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl Sub<Duration> for Moment {
    type Output = Self;
    fn sub(self, time: Duration) -> Self {
        Self(self.0.saturating_sub(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "boot+{:.3}s", self.since_boot().as_secs_f64())
    }
}

//! The wait before the same thing is tried again after a passing fault of the store. Never charged to a unit.

use std::time::Duration;

/// The ceiling of the first wait.
const SHORTEST: Duration = Duration::from_millis(50);
/// The ceiling of every later wait.
const LONGEST: Duration = Duration::from_secs(2);

/// Passing faults in a row after which a batch counts as failed.
pub(super) const FAULTS_IN_A_ROW: u32 = 5;

/// Exponential with full jitter: `failures` (at least 1) in a row, `random` any number.
pub(super) fn wait(failures: u32, random: u64) -> Duration {
    let ceiling = SHORTEST.saturating_mul(1 << failures.saturating_sub(1).min(16)).min(LONGEST);
    let millis = u64::try_from(ceiling.as_millis()).unwrap_or(u64::MAX).max(1);
    Duration::from_millis(1 + random % millis)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_wait_is_never_none_and_never_longer_than_its_ceiling(failures in 0u32..100, random: u64) {
            let wait = wait(failures, random);
            prop_assert!(wait > Duration::ZERO && wait <= LONGEST);
            if failures <= 1 {
                prop_assert!(wait <= SHORTEST);
            }
        }
    }
}

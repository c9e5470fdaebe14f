//! How many requests a second a receiver gets: a token bucket that holds one token, as a value. Requests are spaced evenly, so
//! that no second, wherever it begins, sees more than the limit.

use std::time::Duration;

use crate::domain::Moment;

/// When the next request may go.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pace {
    free_at: Moment,
}

impl Pace {
    /// Takes the next turn, with the one after it so much later that no second has more than so many, at least one; answers how
    /// long it is until then. A turn that is not used is lost.
    pub fn take(&mut self, now: Moment, per_second: u32) -> Duration {
        let nanos = 1_000_000_000_u64.div_ceil(u64::from(per_second.max(1)));
        let turn = self.free_at.max(now);
        self.free_at = turn + Duration::from_nanos(nanos);
        turn.since(now)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_second_sees_more_than_the_limit(limit in 1u32..50, steps in prop::collection::vec(0u64..300, 1..200)) {
            let mut pace = Pace::default();
            let mut now = 0;
            let mut turns = Vec::new();
            for step in steps {
                now += step;
                let at = Moment::after_boot(Duration::from_millis(now));
                turns.push((at + pace.take(at, limit)).since_boot());
            }
            for turn in &turns {
                let within = |other: &&Duration| **other >= *turn && **other < *turn + Duration::from_secs(1);
                let count = turns.iter().filter(within).count();
                prop_assert!(count <= limit as usize, "{count} of {limit}");
            }
        }

        #[test]
        fn whoever_comes_when_nobody_waits_goes_at_once(limit in 1u32..5000, late in 1000u64..100_000) {
            let mut pace = Pace::default();
            prop_assert_eq!(pace.take(Moment::after_boot(Duration::from_millis(5)), limit), Duration::ZERO);
            prop_assert_eq!(pace.take(Moment::after_boot(Duration::from_millis(5 + late)), limit), Duration::ZERO);
        }
    }
}

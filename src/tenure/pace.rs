//! How many units a batch takes: as many as are settled in about a second, at most what the job says.
//!
//! A unit may have one entry or a hundred thousand, and nobody knows before. A batch that takes long holds its locks for as
//! long: a `halt`, a takeover and, on a file, everybody who writes wait for it; past the statement time-out all of it is undone.
//! So it begins small, is doubled while batches are quick, and comes down in proportion where one was slow (multiplicative
//! decrease, as in TCP's congestion control: Jacobson, "Congestion Avoidance and Control", 1988).

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// What the first batch of a run takes.
const FIRST: u32 = 250;
/// Where a batch took less, the next one is larger.
const QUICK: Duration = Duration::from_millis(500);
/// Where a batch took longer, the next ones are smaller.
pub(super) const SLOW: Duration = Duration::from_secs(2);
/// What they are then cut down to take.
const AIM: Duration = Duration::from_secs(1);

/// The size of the next batch of a run, shared by its lanes.
#[derive(Debug)]
pub(super) struct Pace {
    size: AtomicU32,
    most: u32,
}

impl Pace {
    /// At most `most` units, at least one.
    pub(super) fn new(most: u32) -> Self {
        let most = most.max(1);
        Self { size: AtomicU32::new(most.min(FIRST)), most }
    }

    /// How many units the next batch takes.
    pub(super) fn size(&self) -> u32 {
        self.size.load(Ordering::SeqCst)
    }

    /// A batch of `taken` units took so long, whatever came of it; 0 of one that failed before its size could tell. Answers the new size where it became smaller.
    pub(super) fn took(&self, taken: u32, took: Duration) -> Option<u32> {
        // Of two lanes at once the later word counts: each is true, and the next batch corrects it.
        let before = self.size();
        let after = next(before, self.most, taken, took);
        self.size.store(after, Ordering::SeqCst);
        (after < before).then_some(after)
    }
}

fn next(size: u32, most: u32, taken: u32, took: Duration) -> u32 {
    if took > SLOW {
        let fits = u128::from(taken) * AIM.as_millis() / took.as_millis();
        return u32::try_from(fits).unwrap_or(u32::MAX).clamp(1, size);
    }
    // A short page says nothing about a full one.
    if took < QUICK && taken >= size { size.saturating_mul(2).min(most) } else { size }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    #[test]
    fn batches_grow_while_they_are_quick_up_to_what_the_job_says() {
        let pace = Pace::new(2000);
        let mut sizes = vec![pace.size()];
        for _ in 0..4 {
            assert_eq!(pace.took(pace.size(), ms(20)), None);
            sizes.push(pace.size());
        }
        assert_eq!(sizes, [250, 500, 1000, 2000, 2000]);
        assert_eq!(Pace::new(0).size(), 1);
        assert_eq!(Pace::new(10).size(), 10);
    }

    #[test]
    fn a_slow_batch_cuts_the_next_ones_down_in_proportion_and_one_unit_is_the_least() {
        assert_eq!(next(2000, 2000, 2000, ms(30_000)), 66);
        assert_eq!(next(66, 2000, 66, ms(1500)), 66, "neither slow nor quick");
        assert_eq!(next(66, 2000, 66, ms(400)), 132);
        assert_eq!(next(3, 2000, 3, ms(60_000)), 1);
        assert_eq!(next(250, 2000, 7, ms(100)), 250, "a short page says nothing about a full one");
        assert_eq!(next(250, 2000, 0, ms(1)), 250, "nor what failed at once");
        let pace = Pace::new(2000);
        assert_eq!(pace.took(250, ms(10_000)), Some(25));
    }
}

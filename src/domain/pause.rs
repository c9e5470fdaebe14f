//! Pauses of a job: while one lasts, ticks are evaluated as ever and recorded as skipped, and open runs go on.
//!
//! A pause that has ended is kept until every tick that fell due in it has its outcome: whoever was away, or halted,
//! meanwhile still finds that those ticks were not wanted.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// The most ended pauses that are kept of a job; the oldest go first.
pub const PAUSES_KEPT: usize = 100;

/// A pause that has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastPause {
    /// When it began, by the store's clock.
    pub from: DateTime<Utc>,
    /// When it ended; a tick due then is no longer of it.
    pub until: DateTime<Utc>,
    /// Why, as it was said at its beginning.
    pub reason: String,
}

impl PastPause {
    /// Whether a tick that is due then fell into it.
    #[must_use]
    pub fn holds(&self, due_at: DateTime<Utc>) -> bool {
        self.from <= due_at && due_at < self.until
    }

    /// The pauses that are kept once another has ended: those that ticks without an outcome may have fallen into.
    #[must_use]
    pub fn kept(mut past: Vec<Self>, ended: Self, evaluated_until: DateTime<Utc>) -> Vec<Self> {
        past.push(ended);
        past.retain(|pause| pause.until > evaluated_until);
        past.drain(..past.len().saturating_sub(PAUSES_KEPT));
        past
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_800_000_000 + second, 0).expect("in range")
    }

    fn pause(from: i64, until: i64) -> PastPause {
        PastPause { from: at(from), until: at(until), reason: "because".to_owned() }
    }

    #[test]
    fn a_pause_holds_from_its_beginning_to_before_its_end() {
        let pause = pause(10, 20);
        assert_eq!([9, 10, 19, 20].map(|second| pause.holds(at(second))), [false, true, true, false]);
    }

    #[test]
    fn what_is_evaluated_is_forgotten_and_what_is_kept_is_bounded() {
        assert_eq!(
            PastPause::kept(vec![pause(0, 5), pause(6, 12)], pause(15, 20), at(7)),
            [pause(6, 12), pause(15, 20)]
        );
        let many = (0..150).map(|n| pause(n * 2, n * 2 + 1)).collect();
        let kept = PastPause::kept(many, pause(400, 401), at(0));
        assert_eq!((kept.len(), kept.last()), (PAUSES_KEPT, Some(&pause(400, 401))));
    }
}

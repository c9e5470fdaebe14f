//! Ends of tenures that a store was not told of yet: a leader whose end is not on record counts as dead.

use std::sync::{Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, Utc};

use crate::domain::Claim;

/// How many are remembered while the store cannot be written; the oldest goes first.
const MOST: usize = 100;

/// How a tenure ended, and when, where that is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct End {
    pub(super) claim: Claim,
    pub(super) reason: String,
    pub(super) at: Option<DateTime<Utc>>,
}

/// Those that are to be told, in their order.
#[derive(Debug, Default)]
pub(super) struct UntoldEnds(Mutex<Vec<End>>);

impl UntoldEnds {
    /// Remembers one until it was told.
    pub(super) fn remember(&self, claim: &Claim, reason: &str, at: Option<DateTime<Utc>>) {
        let mut ends = self.lock();
        if ends.len() >= MOST {
            ends.remove(0);
        }
        ends.push(End { claim: claim.clone(), reason: reason.to_owned(), at });
    }

    /// The next to be told.
    pub(super) fn next(&self) -> Option<End> {
        self.lock().first().cloned()
    }

    /// It is on record.
    pub(super) fn told(&self, claim: &Claim) {
        self.lock().retain(|end| end.claim != *claim);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<End>> {
        // Nothing panics under it, and a list is whole at any time.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{ElectionName, TenureId, Term};

    #[test]
    fn they_are_told_in_their_order_and_the_oldest_of_too_many_is_forgotten() {
        let claim = |term| Claim {
            election: ElectionName::new("settlement").unwrap(),
            term: Term::new(term).unwrap(),
            tenure_id: TenureId(uuid::Uuid::from_u128(u128::from(term.unsigned_abs()))),
        };
        let ends = UntoldEnds::default();
        let many = i64::try_from(MOST).unwrap() + 1;
        (1..=many).for_each(|term| ends.remember(&claim(term), "drain", None));
        assert_eq!(ends.next().unwrap().claim, claim(2), "the first was one too many");
        ends.told(&claim(2));
        assert_eq!(ends.next(), Some(End { claim: claim(3), reason: "drain".to_owned(), at: None }));
        (3..=many).for_each(|term| ends.told(&claim(term)));
        assert_eq!(ends.next(), None);
    }
}

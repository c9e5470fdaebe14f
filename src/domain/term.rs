//! Terms and claims: what a leader shows to the store, and what the store compares.

use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::ElectionName;

/// The fencing token: handed out by the coordinator, larger for each leader of an election, at least 1. Gaps are normal.
///
/// The idea of a token that the resource itself checks is from Lampson ("How to build a highly available system using
/// consensus", 1996) and Kleppmann ("How to do distributed locking", 2016).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Term(i64);

impl Term {
    /// No term was ever issued.
    pub const NONE: Self = Self(0);

    /// Wraps a number read from a store or a coordinator; `None` below zero.
    #[must_use]
    pub const fn new(number: i64) -> Option<Self> {
        if number >= 0 { Some(Self(number)) } else { None }
    }

    /// The number as stored.
    #[must_use]
    pub const fn get(self) -> i64 {
        self.0
    }

    /// The next term after both what the coordinator issued last and what the store accepted last. Taking the maximum
    /// carries an election over a coordinator that was wiped or restored. `None` when the range is used up.
    #[must_use]
    pub fn next_after(issued: Self, accepted: Self) -> Option<Self> {
        issued.max(accepted).0.checked_add(1).map(Self)
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The random identity of one holding of a term. Two leaders may hold the same term for a moment (a wiped coordinator);
/// the tenure id that the store accepted first decides between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TenureId(pub Uuid);

impl fmt::Display for TenureId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What a tenure presents with every transaction: the store compares all of it with the fence.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Claim {
    /// The election led.
    pub election: ElectionName,
    /// The term won.
    pub term: Term,
    /// This holding of it.
    pub tenure_id: TenureId,
}

impl fmt::Display for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} term {} tenure {}", self.election, self.term, self.tenure_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_term_is_above_both_sources() {
        let t = |n| Term::new(n).expect("not negative");
        assert_eq!(Term::next_after(t(4), t(9)), Some(t(10)));
        assert_eq!(Term::next_after(t(9), t(4)), Some(t(10)));
        assert_eq!(Term::next_after(Term::NONE, Term::NONE), Some(t(1)));
        assert_eq!(Term::next_after(t(i64::MAX), t(0)), None);
        assert_eq!(Term::new(-1), None);
    }
}

//! What the store was last known to be, kept in the coordinator beside the term, so that a store that forgets (restored from
//! a backup, an asynchronous replica promoted) is found out before anything is settled in it again.
//!
//! It is compared at promotion, before the fence is advanced. Lower than remembered, or another history: the election
//! halts with that reason, and only an operator's resume makes what is there the new baseline: at once where a leader waits
//! for it, else by the act that the store keeps of it ([`is_resumed`]).
//!
//! Deliberately absent: with the database as coordinator nothing outside remembers ([`NoMemory`]).

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::domain::{Claim, ElectionName, TenureId, Term};
use crate::store::{Fence, Lineage};

/// What is remembered, as JSON in the coordinator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptedRecord {
    /// The highest term that the store accepted.
    pub term: Term,
    /// From this tenure.
    pub tenure_id: TenureId,
    /// Where the store stood then, or later.
    pub lineage: Lineage,
    /// When that was written down, by the store's clock as the tenure knew it; `None` where it did not know it.
    #[serde(default)]
    pub at: Option<DateTime<Utc>>,
}

/// Why the memory could not be read or written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the coordinator's memory of the store: {0}")]
pub struct MemoryError(pub String);

/// The coordinator's memory of the store.
#[async_trait]
pub trait AcceptedMemory: Send + Sync {
    /// What is remembered; `None` where nothing is.
    ///
    /// # Errors
    /// [`MemoryError`]: not reachable, or not readable.
    async fn get(&self, election: &ElectionName) -> Result<Option<AcceptedRecord>, MemoryError>;

    /// Remembers, as long as the claim still stands in the coordinator. Safe to repeat.
    ///
    /// # Errors
    /// [`MemoryError`]: not reachable, or the claim does not stand any more.
    async fn put(&self, claim: &Claim, record: &AcceptedRecord) -> Result<(), MemoryError>;
}

/// Remembers nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoMemory;

#[async_trait]
impl AcceptedMemory for NoMemory {
    async fn get(&self, _: &ElectionName) -> Result<Option<AcceptedRecord>, MemoryError> {
        Ok(None)
    }

    async fn put(&self, _: &Claim, _: &AcceptedRecord) -> Result<(), MemoryError> {
        Ok(())
    }
}

/// How a store was found to have forgotten.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Forgotten {
    /// It is another database.
    #[error(
        "the database forgot: its system identifier is {found}, {expected} is remembered; check what was restored, then resume"
    )]
    System {
        /// Remembered.
        expected: String,
        /// There.
        found: String,
    },
    /// It was restored or promoted.
    #[error(
        "the database forgot: it is on timeline {found}, {expected} is remembered; check what was restored or promoted, then resume"
    )]
    Timeline {
        /// Remembered.
        expected: u32,
        /// There.
        found: u32,
    },
    /// It stands before what it had acknowledged.
    #[error(
        "the database forgot: its log stands at {found}, {expected} is remembered; check what was restored, then resume"
    )]
    Position {
        /// Remembered, bytes.
        expected: u64,
        /// There, bytes.
        found: u64,
    },
    /// Its fence is lower than what it had accepted.
    #[error(
        "the database forgot: its fence is at term {found}, {expected} was accepted; check what was restored, then resume"
    )]
    Fence {
        /// Accepted.
        expected: Term,
        /// There.
        found: Term,
    },
    /// It holds the same term from another tenure.
    #[error(
        "the database forgot: term {term} is held by tenure {found}, {expected} was accepted; check what was restored, then resume"
    )]
    Tenure {
        /// The term.
        term: Term,
        /// Accepted.
        expected: TenureId,
        /// There.
        found: TenureId,
    },
}

/// Compares what is there with what is remembered.
///
/// # Errors
/// [`Forgotten`] says what differs.
pub fn compare(remembered: &AcceptedRecord, fence: Option<&Fence>, lineage: &Lineage) -> Result<(), Forgotten> {
    crate::mutant!("store.forgetting-not-noticed" => return Ok(()););
    let expected = &remembered.lineage;
    if lineage.system_identifier != expected.system_identifier {
        let (expected, found) = (expected.system_identifier.clone(), lineage.system_identifier.clone());
        return Err(Forgotten::System { expected, found });
    }
    if lineage.timeline != expected.timeline {
        return Err(Forgotten::Timeline { expected: expected.timeline, found: lineage.timeline });
    }
    if lineage.position < expected.position {
        return Err(Forgotten::Position { expected: expected.position, found: lineage.position });
    }
    let term = fence.map_or(Term::NONE, |fence| fence.holder.term);
    if term < remembered.term {
        return Err(Forgotten::Fence { expected: remembered.term, found: term });
    }
    match fence {
        Some(fence) if term == remembered.term && fence.holder.tenure_id != remembered.tenure_id => {
            Err(Forgotten::Tenure { term, expected: remembered.tenure_id, found: fence.holder.tenure_id })
        }
        Some(_) | None => Ok(()),
    }
}

/// Whether an operator has resumed what is there since something else was remembered: then what is there is the baseline,
/// although no leader was there to write that down. An act from before, which a restored store still has, does not count,
/// nor one of another history or of a later position than is found.
#[must_use]
pub fn is_resumed(remembered: &AcceptedRecord, found: &Lineage, resumed: &Lineage, resumed_at: DateTime<Utc>) -> bool {
    remembered.at.is_some_and(|at| resumed_at > at)
        && resumed.system_identifier == found.system_identifier
        && resumed.timeline == found.timeline
        && resumed.position <= found.position
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::store::FenceHolder;

    fn lineage() -> Lineage {
        Lineage { system_identifier: "7001".into(), timeline: 1, position: 500 }
    }

    fn tenure(number: u128) -> TenureId {
        TenureId(Uuid::from_u128(number))
    }

    fn fence(term: i64, tenure_id: TenureId) -> Fence {
        Fence { holder: FenceHolder { term: Term::new(term).expect("valid"), tenure_id }, halt: None }
    }

    fn remembered() -> AcceptedRecord {
        let at = DateTime::from_timestamp(1_800_000_000, 0);
        AcceptedRecord { term: Term::new(7).expect("valid"), tenure_id: tenure(1), lineage: lineage(), at }
    }

    #[test]
    fn a_store_that_went_on_is_the_one_it_was() {
        let later = Lineage { position: 501, ..lineage() };
        assert_eq!(compare(&remembered(), Some(&fence(7, tenure(1))), &lineage()), Ok(()));
        assert_eq!(compare(&remembered(), Some(&fence(9, tenure(2))), &later), Ok(()), "accepted, not yet remembered");
    }

    #[test]
    fn each_way_of_forgetting_is_named() {
        let same = fence(7, tenure(1));
        let other = Lineage { system_identifier: "7002".into(), ..lineage() };
        assert!(matches!(compare(&remembered(), Some(&same), &other), Err(Forgotten::System { .. })));
        let promoted = Lineage { timeline: 2, position: 900, ..lineage() };
        assert!(matches!(compare(&remembered(), Some(&same), &promoted), Err(Forgotten::Timeline { .. })));
        let earlier = Lineage { position: 499, ..lineage() };
        assert!(matches!(compare(&remembered(), Some(&same), &earlier), Err(Forgotten::Position { .. })));
        assert!(matches!(compare(&remembered(), Some(&fence(6, tenure(1))), &lineage()), Err(Forgotten::Fence { .. })));
        assert!(matches!(compare(&remembered(), None, &lineage()), Err(Forgotten::Fence { .. })));
        assert!(matches!(
            compare(&remembered(), Some(&fence(7, tenure(2))), &lineage()),
            Err(Forgotten::Tenure { .. })
        ));
    }

    #[test]
    fn only_a_resume_of_what_is_there_and_since_counts() {
        let found = Lineage { timeline: 2, position: 300, ..lineage() };
        let resumed = Lineage { timeline: 2, position: 250, ..lineage() };
        let at = |second: i64| DateTime::from_timestamp(1_800_000_000 + second, 0).expect("in range");
        assert!(is_resumed(&remembered(), &found, &resumed, at(1)));
        assert!(!is_resumed(&remembered(), &found, &resumed, at(0)), "from before");
        assert!(!is_resumed(&remembered(), &found, &lineage(), at(1)), "of another history");
        assert!(
            !is_resumed(&remembered(), &Lineage { position: 249, ..found.clone() }, &resumed, at(1)),
            "forgot again"
        );
        assert!(
            !is_resumed(&AcceptedRecord { at: None, ..remembered() }, &found, &resumed, at(1)),
            "nobody knows when"
        );
    }

    #[test]
    fn the_record_is_read_back_from_its_json() {
        let json = serde_json::to_string(&remembered()).expect("serializable");
        assert!(json.contains(r#""term":7"#), "{json}");
        assert_eq!(serde_json::from_str::<AcceptedRecord>(&json).expect("readable"), remembered());
    }
}

//! The coordinator in a database: for deployments without etcd. PostgreSQL beside the store's tables ([`PgCoordinator`]), or a
//! SQLite file of its own beside a SQLite store ([`SqliteCoordinator`]).
//!
//! Invariants, of both:
//! - A lease is a row with an expiry by the database's clock (PostgreSQL) or by the machine's boot and `CLOCK_BOOTTIME`
//!   (SQLite), read *after* the lock is held. Lapsed, it counts as gone wherever it is looked at, and so does what stands on it.
//! - One conditional update wins, one renews. Each answers with what was found behind the same lock.
//! - An attempt, sending and answer together, has one deadline; a connection that failed is dropped.
//! - Lease ids are random, so that none is taken for one of a file that was deleted.
//!
//! An election's revision counts its own changes, in steps of two. A lapse is written by nobody, so it is shown as one step:
//! what a watch compares changes when a lease lapses, without a write.
//!
//! Deliberately absent: notifications (a watch is a poll, and its bounds are short), retries (the machine's), and everything
//! that only a coordinator *beside* the store can give: it is away when the database is away, and forgets with it.

mod postgres;
mod sqlite;
mod watch;

use std::time::Duration;

pub use self::postgres::{PgCoordinator, PgCoordinatorSettings};
pub use self::sqlite::{SqliteCoordinator, SqliteCoordinatorSettings, lease_file};

use super::coordinator::CoordinatorError;
use super::record::{ElectionState, LeaderRecord, LeaseId, ReplicaRecord, Revision, SeenLeader};
use crate::clock;
use crate::domain::Term;

/// The longest content of a row that an error shows.
const SHOWN: usize = 120;

/// An election's row, as both databases answer it.
struct Found {
    read_at: i64,
    term: i64,
    term_revision: i64,
    leader: Option<String>,
    leader_lease: Option<i64>,
    leader_revision: Option<i64>,
}

impl Found {
    /// Of an election that has no row.
    const NOTHING: Self =
        Self { read_at: 0, term: 0, term_revision: 0, leader: None, leader_lease: None, leader_revision: None };

    fn state(self) -> Result<ElectionState, CoordinatorError> {
        let leader = match (self.leader, self.leader_lease, self.leader_revision) {
            (Some(record), Some(lease), Some(revision)) => Some(SeenLeader {
                record: serde_json::from_str(&record).ok(),
                revision: Revision(revision),
                lease: LeaseId(lease),
            }),
            (None | Some(_), None | Some(_), None | Some(_)) => None,
        };
        Ok(ElectionState {
            leader,
            term: term(self.term)?,
            term_revision: Revision(self.term_revision),
            read_at: Revision(self.read_at),
        })
    }
}

fn term(found: i64) -> Result<Term, CoordinatorError> {
    Term::new(found).ok_or_else(|| CoordinatorError::Corrupt {
        key: "term".to_owned(),
        found: found.to_string(),
        expected: "a whole number, at least 0",
    })
}

/// A new lease's id: random, positive, never [`LeaseId::NONE`].
fn new_lease() -> LeaseId {
    LeaseId(i64::try_from(clock::random_u64() >> 1).unwrap_or(i64::MAX).max(1))
}

fn leader_json(record: &LeaderRecord) -> Result<String, CoordinatorError> {
    serde_json::to_string(record).map_err(|error| unwritable(&error))
}

fn replica_json(record: &ReplicaRecord) -> Result<String, CoordinatorError> {
    serde_json::to_string(record).map_err(|error| unwritable(&error))
}

/// A record of ours is always JSON; were it not, nothing of it may be written.
fn unwritable(error: &serde_json::Error) -> CoordinatorError {
    CoordinatorError::Corrupt {
        key: "record".to_owned(),
        found: error.to_string().chars().take(SHOWN).collect(),
        expected: "a record that is JSON",
    }
}

/// A time to live as the databases keep it.
fn millis(ttl: Duration) -> i64 {
    i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX)
}

fn from_millis(ttl: i64) -> Duration {
    Duration::from_millis(u64::try_from(ttl).unwrap_or(0))
}

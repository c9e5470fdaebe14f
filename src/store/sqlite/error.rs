//! From SQLite's errors to the port's, by what the caller does about them.
//!
//! Invariant: an error of this module says "nothing was done", but for one of a COMMIT: what was not answered, or failed by the
//! disk ([`DISK_FAULT`]), is [`StoreError::Unknown`], and decided where COMMIT is sent.
//!
//! Codes are SQLSTATEs, as on PostgreSQL, so that whoever looks at them looks at one set.

use sqlx::error::DatabaseError;

use crate::store::{BatchError, StoreError};

/// SQLSTATE of the file's lock that was not to be had: insufficient resources, so the store's own trouble. Not 55P03, the lock of
/// a row, which after some tries counts against the batch: this one is held by an import, or by a shell somewhere, for as long
/// as that takes, while reads go on.
pub(super) const LOCKED: &str = "53000";

/// SQLSTATE of a disk that failed to read, write or sync.
pub(super) const DISK_FAULT: &str = "58030";

/// Maps errors of one operation; use as `.map_err(at("settle"))`.
pub(super) fn at(operation: &'static str) -> impl Fn(sqlx::Error) -> StoreError + Copy {
    move |error| fault(operation, &error)
}

/// Maps one error.
pub(super) fn fault(operation: &'static str, error: &sqlx::Error) -> StoreError {
    match error.as_database_error() {
        Some(error) => by_code(operation, code_of(error), &words_of(error)),
        None if is_of_the_way(error) => StoreError::Unreachable { operation, detail: error.to_string() },
        None => StoreError::Broken { operation, detail: error.to_string() },
    }
}

/// Whether another connection has the lock that is asked for.
pub(super) fn is_busy(error: &sqlx::Error) -> bool {
    error.as_database_error().is_some_and(|error| matches!(code_of(error) & 0xff, code::BUSY | code::LOCKED))
}

/// Whether a statement's error is a verdict on the batch: money out of range, a broken constraint, or our own statement
/// time-out. Everything else is a fault of the store and no attempt.
pub(super) fn verdict(error: &sqlx::Error) -> Option<BatchError> {
    let database = error.as_database_error()?;
    let code = code_of(database);
    if is_overflow(database) {
        return Some(BatchError { message: "a number leaves the range of 64 bits".to_owned(), permanent: true });
    }
    match code & 0xff {
        code::INTERRUPT => Some(BatchError { message: TOO_LONG.to_owned(), permanent: false }),
        code::CONSTRAINT if !is_guard(database) => {
            let constraint = constraint_of(database.message());
            let message = match meaning(constraint) {
                Some(meaning) => meaning.to_owned(),
                None if constraint.is_empty() => "a constraint is broken".to_owned(),
                None => format!("constraint {constraint} is broken"),
            };
            Some(BatchError { message, permanent: false })
        }
        _ => None,
    }
}

const TOO_LONG: &str = "the transaction computed for longer than its statement time-out";

/// What a constraint says in the words of the domain. SQLite names a CHECK by its name, a unique index by its columns.
pub(super) fn meaning(constraint: &str) -> Option<&'static str> {
    Some(match constraint {
        "run.job_id, run.tick" => "the job already has a run of this tick",
        "run.request_id, run.tick" => "the request already has its run",
        "run_is_not_early" => "the store's clock has not reached the run's due time",
        "unit.run_id, unit.key" => "the run already has a unit of this key",
        "journal.unit_id, journal.kind, journal.generation" => "the unit was already posted",
        "instruction.unit_id, instruction.kind, instruction.generation" => "the unit already has its instruction",
        "instruction.idempotency_key" => "another instruction has the same idempotency key",
        "instruction_amount_is_positive" => "an instruction's amount must be above 0",
        "posting_amount_is_positive" => "a posting's amount must be above 0",
        "entry.source, entry.external_id" => "an open entry of this source has the same id",
        "entry_kind_and_signs" => "an entry's sign does not fit its kind",
        "entry_is_withdrawn_or_bound" => "an entry cannot be both withdrawn and settled",
        _ => return None,
    })
}

/// The part after "… constraint failed: ".
fn constraint_of(message: &str) -> &str {
    message.split_once("constraint failed: ").map_or("", |(_, constraint)| constraint)
}

/// Primary result codes (sqlite3.h).
mod code {
    pub(super) const PERM: i32 = 3;
    pub(super) const ABORT: i32 = 4;
    pub(super) const BUSY: i32 = 5;
    pub(super) const LOCKED: i32 = 6;
    pub(super) const NOMEM: i32 = 7;
    pub(super) const READONLY: i32 = 8;
    pub(super) const INTERRUPT: i32 = 9;
    pub(super) const IOERR: i32 = 10;
    pub(super) const CORRUPT: i32 = 11;
    pub(super) const FULL: i32 = 13;
    pub(super) const CANTOPEN: i32 = 14;
    pub(super) const PROTOCOL: i32 = 15;
    pub(super) const CONSTRAINT: i32 = 19;
    pub(super) const NOTADB: i32 = 26;
    /// Extended: a read transaction that would write after another wrote.
    pub(super) const BUSY_SNAPSHOT: i32 = 5 | (2 << 8);
    /// Extended: the file was moved or unlinked while it was open.
    pub(super) const READONLY_DBMOVED: i32 = 8 | (4 << 8);
}

fn by_code(operation: &'static str, code: i32, words: &str) -> StoreError {
    let again = |state: &str, detail: String| StoreError::TryAgain { operation, code: state.to_owned(), detail };
    match code {
        code::BUSY_SNAPSHOT => return again("40001", words.to_owned()),
        code::READONLY_DBMOVED => {
            let detail =
                format!("the file was moved or deleted while it was in use ({words}): put it back and restart");
            return StoreError::Unfit { detail };
        }
        _ => {}
    }
    match code & 0xff {
        code::BUSY | code::LOCKED | code::PROTOCOL => {
            again(LOCKED, format!("another connection holds the file's lock ({words})"))
        }
        code::ABORT => again("40000", words.to_owned()),
        code::INTERRUPT => StoreError::StatementTimeout { operation, detail: TOO_LONG.to_owned() },
        code::FULL => {
            again("53100", format!("the disk is full ({words}): nothing was written; make room on the file's disk"))
        }
        code::NOMEM => again("53200", words.to_owned()),
        code::IOERR => again(
            DISK_FAULT,
            format!("the file cannot be read or written ({words}): look at the disk and its free space"),
        ),
        code::CORRUPT => again(
            "XX001",
            format!("the file is damaged ({words}): stop every replica, keep a copy, and restore a backup"),
        ),
        code::READONLY => StoreError::ReadOnly {
            operation,
            detail: format!(
                "the file or its directory may not be written ({words}): give this user the right to write both, for \
                 SQLite keeps its log beside the file"
            ),
        },
        code::CANTOPEN | code::PERM => StoreError::Unfit {
            detail: format!(
                "the file cannot be opened ({words}): its directory must exist, and this user must be allowed to read and \
                 write both"
            ),
        },
        code::NOTADB => StoreError::Unfit {
            detail: format!(
                "the file is no SQLite database ({words}): name another file in database.url; it was left as it is"
            ),
        },
        _ => StoreError::Broken { operation, detail: words.to_owned() },
    }
}

/// The extended result code.
fn code_of(error: &dyn DatabaseError) -> i32 {
    error.code().and_then(|code| code.parse().ok()).unwrap_or(0)
}

/// A guard trigger's own words.
fn is_guard(error: &dyn DatabaseError) -> bool {
    error.message().starts_with("BU0")
}

fn is_overflow(error: &dyn DatabaseError) -> bool {
    error.message() == "integer overflow"
}

/// Message and code. SQLite's messages hold names of tables and columns, never what is in them.
fn words_of(error: &dyn DatabaseError) -> String {
    let code = code_of(error);
    match meaning(constraint_of(error.message())) {
        Some(meaning) => format!("{meaning} (SQLite {code})"),
        None => format!("{} (SQLite {code})", error.message()),
    }
}

fn is_of_the_way(error: &sqlx::Error) -> bool {
    matches!(
        error,
        sqlx::Error::Io(_) | sqlx::Error::PoolTimedOut | sqlx::Error::PoolClosed | sqlx::Error::WorkerCrashed
    )
}

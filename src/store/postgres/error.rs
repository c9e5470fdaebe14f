//! From the driver's errors to the port's, by what the caller does about them.
//!
//! Invariant: an error of this module says "nothing was done", except where it is met while COMMIT is under way: there
//! [`commit_fault`] decides, and what is not surely undone is [`StoreError::Unknown`].

use sqlx::error::DatabaseError;

use crate::store::{BatchError, StoreError};
use crate::tls;

/// Maps errors of one operation; use as `.map_err(at("settle"))`.
pub(super) fn at(operation: &'static str) -> impl Fn(sqlx::Error) -> StoreError + Copy {
    move |error| fault(operation, &error)
}

/// Maps one error that was met before COMMIT was sent.
pub(super) fn fault(operation: &'static str, error: &sqlx::Error) -> StoreError {
    match error.as_database_error() {
        Some(error) => by_state(operation, &state_of(error), &words_of(error)),
        None if is_of_the_way(error) => StoreError::Unreachable { operation, detail: with_advice(error) },
        None => StoreError::Broken { operation, detail: error.to_string() },
    }
}

/// Maps an error that was met between sending COMMIT and its answer. Only classes by which the server says that it
/// rolled back are definite.
pub(super) fn commit_fault(operation: &'static str, error: &sqlx::Error) -> StoreError {
    let Some(database) = error.as_database_error() else {
        return StoreError::Unknown { operation, detail: error.to_string() };
    };
    let state = state_of(database);
    match state.get(..2) {
        Some("23" | "25" | "40" | "P0" | "BU") => by_state(operation, &state, &words_of(database)),
        Some(_) | None => StoreError::Unknown { operation, detail: words_of(database) },
    }
}

/// Whether a statement's error is a verdict on the batch: money out of range, a broken constraint, an error raised by a
/// handler's own SQL, or our own statement time-out. Everything else is a fault of the store and no attempt.
pub(super) fn verdict(error: &sqlx::Error) -> Option<BatchError> {
    let database = error.as_database_error()?;
    let state = state_of(database);
    let permanent = match state.as_str() {
        "57014" | "P0001" => false,
        _ if state.starts_with("22") => true,
        _ if state.starts_with("23") => false,
        _ => return None,
    };
    let message = match database.constraint() {
        Some(constraint) => {
            meaning(constraint).map_or_else(|| format!("constraint {constraint} is broken"), str::to_owned)
        }
        None => format!("{} ({state})", database.message()),
    };
    Some(BatchError { message, permanent })
}

/// What a named constraint says in the words of the domain.
pub(super) fn meaning(constraint: &str) -> Option<&'static str> {
    Some(match constraint {
        "run_one_per_job_and_tick" => "the job already has a run of this tick",
        "run_one_per_request_and_tick" => "the request already has its run",
        "run_is_not_early" => "the store's clock has not reached the run's due time",
        "unit_one_per_run_and_key" => "the run already has a unit of this key",
        "journal_one_per_unit_and_kind" => "the unit was already posted",
        "instruction_one_per_unit_and_kind" => "the unit already has its instruction",
        "instruction_key_is_unique" => "another instruction has the same idempotency key",
        "instruction_amount_is_positive" => "an instruction's amount must be above 0",
        "posting_amount_is_positive" => "a posting's amount must be above 0",
        "entry_one_per_source_and_id" => "an open entry of this source has the same id",
        "entry_kind_and_signs" => "an entry's sign does not fit its kind",
        "entry_is_withdrawn_or_bound" => "an entry cannot be both withdrawn and settled",
        _ => return None,
    })
}

/// Whether the session is gone: the way to it broke, or the server ended it.
pub(super) fn is_lost(error: &StoreError) -> bool {
    match error {
        StoreError::Unreachable { .. } => true,
        StoreError::TryAgain { code, .. } => code.starts_with("57P"),
        StoreError::StatementTimeout { .. }
        | StoreError::TimedOut { .. }
        | StoreError::Unknown { .. }
        | StoreError::ReadOnly { .. }
        | StoreError::Schema { .. }
        | StoreError::Forgot { .. }
        | StoreError::Unfit { .. }
        | StoreError::Ended { .. }
        | StoreError::Broken { .. } => false,
    }
}

/// Classes of SQLSTATE by which the database says that it is in trouble itself: insufficient resources, system errors,
/// internal errors.
const TROUBLE: [&str; 3] = ["53", "58", "XX"];

fn by_state(operation: &'static str, state: &str, words: &str) -> StoreError {
    let again = || StoreError::TryAgain { operation, code: state.to_owned(), detail: words.to_owned() };
    match state {
        "40001" | "40P01" | "55P03" | "25P03" => again(),
        "57014" => StoreError::StatementTimeout { operation, detail: words.to_owned() },
        "25006" => StoreError::ReadOnly { operation, detail: words.to_owned() },
        _ if state.starts_with("57P") => again(),
        // The database's own trouble (no room, too many connections, I/O, a defect): nothing was done, it may pass, and
        // it says nothing about what was tried.
        _ if TROUBLE.iter().any(|class| state.starts_with(class)) => again(),
        // Nobody gets in with these credentials: nothing was done, and others may be in the file the next time.
        _ if state.starts_with("28") => {
            let detail =
                format!("{words}: look at the user and the password of [database], and at the server's pg_hba.conf");
            StoreError::Unreachable { operation, detail }
        }
        _ if state.starts_with("08") => StoreError::Unreachable { operation, detail: words.to_owned() },
        _ => StoreError::Broken { operation, detail: words.to_owned() },
    }
}

fn state_of(error: &dyn DatabaseError) -> String {
    error.code().map(std::borrow::Cow::into_owned).unwrap_or_default()
}

/// SQLSTATE and message. The details of an error may hold amounts and merchant ids and are left out.
fn words_of(error: &dyn DatabaseError) -> String {
    match error.constraint().and_then(meaning) {
        Some(meaning) => format!("{meaning} ({})", state_of(error)),
        None => format!("{} ({})", error.message(), state_of(error)),
    }
}

fn with_advice(error: &sqlx::Error) -> String {
    match tls::advice(error, tls::DATABASE) {
        Some(advice) => format!("{error}: {advice}"),
        // The server says no to TLS itself.
        None if error.to_string().contains("does not support TLS") => {
            format!("{error}: database.tls_mode asks for TLS; expected `ssl = on` at the server, and its certificate")
        }
        None => error.to_string(),
    }
}

fn is_of_the_way(error: &sqlx::Error) -> bool {
    matches!(
        error,
        sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            | sqlx::Error::Protocol(_)
            | sqlx::Error::PoolTimedOut
            | sqlx::Error::PoolClosed
            | sqlx::Error::WorkerCrashed
    )
}

//! Stored text and numbers as values of the domain. What does not fit is an error of reading, never a guess.

use std::fmt::Display;

use sqlx::Row;
use sqlx::postgres::PgRow;

use crate::domain::entry::EntryKind;
use crate::domain::instruction::InstructionState;
use crate::domain::money::Currency;
use crate::domain::run::{RunKind, RunState};
use crate::domain::unit::UnitState;
use crate::domain::{ElectionName, JobName, Term};

/// What was found where a value of the domain was expected.
#[derive(Debug, thiserror::Error)]
#[error("column {column}: {found:?} is not {expected}: {detail}")]
struct Unreadable {
    column: String,
    found: String,
    expected: &'static str,
    detail: String,
}

/// An error of reading.
pub(super) fn unreadable(column: &str, found: &str, expected: &'static str, detail: impl Display) -> sqlx::Error {
    sqlx::Error::Decode(Box::new(Unreadable {
        column: column.to_owned(),
        found: found.to_owned(),
        expected,
        detail: detail.to_string(),
    }))
}

fn known<T>(
    row: &PgRow,
    column: &str,
    expected: &'static str,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<T, sqlx::Error> {
    let text: &str = row.try_get(column)?;
    parse(text).ok_or_else(|| unreadable(column, text, expected, "the store knows a name that this release does not"))
}

pub(super) fn run_state(row: &PgRow, column: &str) -> Result<RunState, sqlx::Error> {
    known(row, column, "a state of a run", RunState::parse)
}

pub(super) fn run_kind(row: &PgRow, column: &str) -> Result<RunKind, sqlx::Error> {
    known(row, column, "a kind of run", RunKind::parse)
}

pub(super) fn unit_state(row: &PgRow, column: &str) -> Result<UnitState, sqlx::Error> {
    known(row, column, "a state of a unit", UnitState::parse)
}

pub(super) fn instruction_state(row: &PgRow, column: &str) -> Result<InstructionState, sqlx::Error> {
    known(row, column, "a state of an instruction", InstructionState::parse)
}

pub(super) fn entry_kind(row: &PgRow, column: &str) -> Result<EntryKind, sqlx::Error> {
    known(row, column, "a kind of entry", EntryKind::parse)
}

pub(super) fn currency(row: &PgRow, column: &str) -> Result<Currency, sqlx::Error> {
    let text: &str = row.try_get(column)?;
    Currency::new(text).map_err(|error| unreadable(column, text, "a currency", error))
}

pub(super) fn job_name(row: &PgRow, column: &str) -> Result<JobName, sqlx::Error> {
    let text: &str = row.try_get(column)?;
    JobName::new(text).map_err(|error| unreadable(column, text, "a job name", error))
}

pub(super) fn election_name(row: &PgRow, column: &str) -> Result<ElectionName, sqlx::Error> {
    let text: &str = row.try_get(column)?;
    ElectionName::new(text).map_err(|error| unreadable(column, text, "an election name", error))
}

/// A term.
pub(super) fn term(row: &PgRow, column: &str) -> Result<Term, sqlx::Error> {
    let number: i64 = row.try_get(column)?;
    Term::new(number).ok_or_else(|| unreadable(column, &number.to_string(), "a term", "below 0"))
}

/// A count, or another number that is never below 0.
pub(super) fn count(row: &PgRow, column: &str) -> Result<u64, sqlx::Error> {
    let number: i64 = row.try_get(column)?;
    u64::try_from(number).map_err(|error| unreadable(column, &number.to_string(), "a count", error))
}

/// A small count.
pub(super) fn small_count(row: &PgRow, column: &str) -> Result<u32, sqlx::Error> {
    let number: i32 = row.try_get(column)?;
    u32::try_from(number).map_err(|error| unreadable(column, &number.to_string(), "a count", error))
}

/// A sum: numeric in the database, read as text, wider than any amount.
pub(super) fn wide(row: &PgRow, column: &str) -> Result<i128, sqlx::Error> {
    let text: &str = row.try_get(column)?;
    text.parse().map_err(|error| unreadable(column, text, "a whole number", error))
}

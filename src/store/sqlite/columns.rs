//! Stored text and numbers as values of the domain, and back. What does not fit is an error of reading, never a guess.
//!
//! How values are kept: times as microseconds since the epoch, identities as lower-case text with hyphens, dates as
//! `YYYY-MM-DD`, JSON as text. Lists go into a statement as one JSON text that `json_each` takes apart.

use std::fmt::Display;

use chrono::{DateTime, NaiveDate, Utc};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sqlx::Row;
use sqlx::sqlite::SqliteRow;
use uuid::Uuid;

use crate::domain::entry::EntryKind;
use crate::domain::instruction::InstructionState;
use crate::domain::money::Currency;
use crate::domain::run::{RunKind, RunState};
use crate::domain::unit::UnitState;
use crate::domain::{ElectionName, JobName, TenureId, Term};
use crate::store::FenceHolder;

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

/// A time as it is kept.
pub(super) fn micros(time: DateTime<Utc>) -> i64 {
    time.timestamp_micros()
}

/// A time.
pub(super) fn time(row: &SqliteRow, column: &str) -> Result<DateTime<Utc>, sqlx::Error> {
    time_of(column, row.try_get(column)?)
}

/// A time that may be missing.
pub(super) fn maybe_time(row: &SqliteRow, column: &str) -> Result<Option<DateTime<Utc>>, sqlx::Error> {
    row.try_get::<Option<i64>, _>(column)?.map(|micros| time_of(column, micros)).transpose()
}

fn time_of(column: &str, micros: i64) -> Result<DateTime<Utc>, sqlx::Error> {
    DateTime::from_timestamp_micros(micros)
        .ok_or_else(|| unreadable(column, &micros.to_string(), "a time in microseconds", "it is out of range"))
}

/// An identity as it is kept.
pub(super) fn id_text(id: Uuid) -> String {
    id.hyphenated().to_string()
}

/// An identity.
pub(super) fn id(row: &SqliteRow, column: &str) -> Result<Uuid, sqlx::Error> {
    id_of(column, row.try_get(column)?)
}

/// An identity that may be missing.
pub(super) fn maybe_id(row: &SqliteRow, column: &str) -> Result<Option<Uuid>, sqlx::Error> {
    row.try_get::<Option<&str>, _>(column)?.map(|text| id_of(column, text)).transpose()
}

fn id_of(column: &str, text: &str) -> Result<Uuid, sqlx::Error> {
    Uuid::parse_str(text).map_err(|error| unreadable(column, text, "an identity", error))
}

/// A date as it is kept.
pub(super) fn date_text(date: NaiveDate) -> String {
    date.format("%Y-%m-%d").to_string()
}

/// A date.
pub(super) fn date(row: &SqliteRow, column: &str) -> Result<NaiveDate, sqlx::Error> {
    let text: &str = row.try_get(column)?;
    text.parse().map_err(|error| unreadable(column, text, "a date", error))
}

/// A value that is kept as JSON.
pub(super) fn json<T: DeserializeOwned>(row: &SqliteRow, column: &str) -> Result<T, sqlx::Error> {
    let text: &str = row.try_get(column)?;
    // The text may hold amounts: it is not shown.
    serde_json::from_str(text).map_err(|error| unreadable(column, "…", "JSON of this release", error))
}

/// A value as JSON, also a list of rows for `json_each`.
pub(super) fn json_text<T: Serialize + ?Sized>(value: &T) -> Result<String, sqlx::Error> {
    serde_json::to_string(value).map_err(|error| sqlx::Error::Encode(Box::new(error)))
}

/// Whose claim a row of the fence holds, or a refusal found.
pub(super) fn maybe_holder(
    row: &SqliteRow,
    term_column: &str,
    tenure_column: &str,
) -> Result<Option<FenceHolder>, sqlx::Error> {
    match (row.try_get::<Option<i64>, _>(term_column)?, maybe_id(row, tenure_column)?) {
        (Some(found), Some(tenure)) => {
            Ok(Some(FenceHolder { term: term_of(term_column, found)?, tenure_id: TenureId(tenure) }))
        }
        (Some(_) | None, _) => Ok(None),
    }
}

/// A term.
pub(super) fn term(row: &SqliteRow, column: &str) -> Result<Term, sqlx::Error> {
    term_of(column, row.try_get(column)?)
}

fn term_of(column: &str, found: i64) -> Result<Term, sqlx::Error> {
    Term::new(found).ok_or_else(|| unreadable(column, &found.to_string(), "a term", "it is below zero"))
}

fn known<T>(
    row: &SqliteRow,
    column: &str,
    expected: &'static str,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<T, sqlx::Error> {
    let text: &str = row.try_get(column)?;
    parse(text).ok_or_else(|| unreadable(column, text, expected, "the store knows a name that this release does not"))
}

pub(super) fn run_state(row: &SqliteRow, column: &str) -> Result<RunState, sqlx::Error> {
    known(row, column, "a state of a run", RunState::parse)
}

pub(super) fn run_kind(row: &SqliteRow, column: &str) -> Result<RunKind, sqlx::Error> {
    known(row, column, "a kind of run", RunKind::parse)
}

pub(super) fn unit_state(row: &SqliteRow, column: &str) -> Result<UnitState, sqlx::Error> {
    known(row, column, "a state of a unit", UnitState::parse)
}

pub(super) fn instruction_state(row: &SqliteRow, column: &str) -> Result<InstructionState, sqlx::Error> {
    known(row, column, "a state of an instruction", InstructionState::parse)
}

pub(super) fn entry_kind(row: &SqliteRow, column: &str) -> Result<EntryKind, sqlx::Error> {
    known(row, column, "a kind of entry", EntryKind::parse)
}

pub(super) fn currency(row: &SqliteRow, column: &str) -> Result<Currency, sqlx::Error> {
    let text: &str = row.try_get(column)?;
    Currency::new(text).map_err(|error| unreadable(column, text, "a currency", error))
}

pub(super) fn job_name(row: &SqliteRow, column: &str) -> Result<JobName, sqlx::Error> {
    let text: &str = row.try_get(column)?;
    JobName::new(text).map_err(|error| unreadable(column, text, "a job name", error))
}

pub(super) fn election_name(row: &SqliteRow, column: &str) -> Result<ElectionName, sqlx::Error> {
    let text: &str = row.try_get(column)?;
    ElectionName::new(text).map_err(|error| unreadable(column, text, "an election name", error))
}

/// A count, or another number that is never below 0.
pub(super) fn count(row: &SqliteRow, column: &str) -> Result<u64, sqlx::Error> {
    let number: i64 = row.try_get(column)?;
    u64::try_from(number).map_err(|error| unreadable(column, &number.to_string(), "a count", error))
}

/// A small count.
pub(super) fn small_count(row: &SqliteRow, column: &str) -> Result<u32, sqlx::Error> {
    let number: i64 = row.try_get(column)?;
    u32::try_from(number).map_err(|error| unreadable(column, &number.to_string(), "a small count", error))
}

/// A sum that may be wider than 64 bits: `sum(x >> 32)` as `NAME_high` and `sum(x & 4294967295)` as `NAME_low`. SQLite's own
/// sum of whole numbers fails where it overflows.
pub(super) fn wide(row: &SqliteRow, column: &str) -> Result<i128, sqlx::Error> {
    let high: i64 = row.try_get(format!("{column}_high").as_str())?;
    let low: i64 = row.try_get(format!("{column}_low").as_str())?;
    Ok((i128::from(high) << 32) + i128::from(low))
}

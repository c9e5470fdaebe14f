//! Charging failed attempts, and setting units aside.

use std::time::Duration;

use sqlx::Row;
use sqlx::sqlite::SqliteConnection;

use super::columns::json_text;
use super::error::at;
use super::tx::Done;
use crate::domain::Claim;
use crate::store::{Charge, StoreError};

const OPERATION: &str = "charge";

/// The most characters of an error that are kept with a unit or an instruction.
pub(super) const ERROR_CHARACTERS: usize = 1000;

/// An error as it is kept.
pub(super) fn bounded(error: &str) -> String {
    // A NUL ends a text of SQLite's JSON.
    error.chars().filter(|character| *character != '\0').take(ERROR_CHARACTERS).collect()
}

/// The longest wait before another attempt: a year.
const WAIT: Duration = Duration::from_hours(366 * 24);

/// A wait as it is added to a time; at most a year, so that the store's time stays in its range.
pub(super) fn wait_micros(wait: Duration) -> i64 {
    i64::try_from(wait.min(WAIT).as_micros()).unwrap_or(i64::MAX)
}

/// Charges attempts in an open transaction that has entered the fence. Answers how many were charged.
///
/// # Errors
/// Any [`StoreError`]; the caller rolls back.
pub(super) async fn charge(
    conn: &mut SqliteConnection,
    claim: &Claim,
    run: i64,
    charges: &[Charge],
) -> Result<Done<u64>, StoreError> {
    write(conn, claim, run, charges).await.map(Done::Commit).map_err(at(OPERATION))
}

async fn write(conn: &mut SqliteConnection, claim: &Claim, run: i64, charges: &[Charge]) -> Result<u64, sqlx::Error> {
    let given: Vec<_> = charges
        .iter()
        .map(|charge| (charge.unit, charge.attempts, bounded(&charge.error), charge.again_in.map(wait_micros)))
        .collect();
    let given = json_text(&given)?;
    let aside: i64 = sqlx::query(include_str!("sql/charge_aside.sql"))
        .bind(run)
        .bind(claim.election.as_str())
        .bind(given.as_str())
        .fetch_one(&mut *conn)
        .await?
        .try_get("aside")?;
    let batch = if aside > 0 { Some(batch(conn, claim, run, aside, 0, aside).await?) } else { None };
    let written = sqlx::query(include_str!("sql/charge.sql"))
        .bind(run)
        .bind(claim.election.as_str())
        .bind(claim.term.get())
        .bind(given.as_str())
        .bind(batch)
        .execute(conn)
        .await?;
    Ok(written.rows_affected())
}

/// A batch row without instructions.
pub(super) async fn batch(
    conn: &mut SqliteConnection,
    claim: &Claim,
    run: i64,
    units: i64,
    settled: i64,
    set_aside: i64,
) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar(include_str!("sql/batch_insert.sql"))
        .bind(run)
        .bind(claim.election.as_str())
        .bind(claim.term.get())
        .bind(units)
        .bind(settled)
        .bind(0_i64)
        .bind(0_i64)
        .bind(set_aside)
        .bind(0_i64)
        .fetch_one(conn)
        .await
}

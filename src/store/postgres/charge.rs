//! Charging failed attempts, and setting units aside.

use std::time::Duration;

use sqlx::postgres::PgConnection;

use super::error::at;
use super::tx::Done;
use crate::domain::Claim;
pub(super) use crate::store::bounds::bounded;
use crate::store::{Charge, StoreError, bounds};

/// A wait in milliseconds, as bound to a statement.
pub(super) fn millis(wait: Duration) -> i64 {
    i64::try_from(bounds::wait(wait).as_millis()).unwrap_or(i64::MAX)
}

/// Charges attempts in an open transaction that has entered the fence. Answers how many were charged.
///
/// # Errors
/// Any [`StoreError`]; the caller rolls back.
pub(super) async fn charge(
    conn: &mut PgConnection,
    claim: &Claim,
    run: i64,
    charges: &[Charge],
) -> Result<Done<u64>, StoreError> {
    let units: Vec<i64> = charges.iter().map(|charge| charge.unit).collect();
    let attempts: Vec<i32> = charges.iter().map(|charge| i32::try_from(charge.attempts).unwrap_or(i32::MAX)).collect();
    let errors: Vec<String> = charges.iter().map(|charge| bounded(&charge.error)).collect();
    let waits: Vec<Option<i64>> = charges.iter().map(|charge| charge.again_in.map(millis)).collect();
    let taken: i64 = sqlx::query_scalar(include_str!("sql/charge.sql"))
        .bind(run)
        .bind(claim.election.as_str())
        .bind(claim.term.get())
        .bind(units)
        .bind(attempts)
        .bind(errors)
        .bind(waits)
        .fetch_one(conn)
        .await
        .map_err(at("charge"))?;
    Ok(Done::Commit(taken.unsigned_abs()))
}

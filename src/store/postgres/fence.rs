//! Reading the fence, and the exclusive lock of those who change it.

use std::time::Duration;

use sqlx::Row;
use sqlx::postgres::{PgConnection, PgRow};
use uuid::Uuid;

use super::error::at;
use crate::domain::{ElectionName, TenureId, Term};
use crate::store::{Fence, FenceHolder, Halt, StoreError};

/// Takes an election's exclusive advisory lock, to the end of the transaction, waiting at most `bound`. The next
/// statement sees everything that fenced transactions before it have committed.
pub(super) async fn lock_exclusive(
    connection: &mut PgConnection,
    operation: &'static str,
    election: &str,
    bound: Duration,
) -> Result<(), StoreError> {
    sqlx::query(include_str!("sql/lock_wait.sql"))
        .bind(bound.as_millis().max(1).to_string())
        .execute(&mut *connection)
        .await
        .map_err(at(operation))?;
    sqlx::query(include_str!("sql/lock_exclusive.sql"))
        .bind(election)
        .execute(connection)
        .await
        .map(|_| ())
        .map_err(at(operation))
}

/// Reads the fence of an election; `None` where nobody ever led.
pub(super) async fn read(
    connection: &mut PgConnection,
    operation: &'static str,
    election: &ElectionName,
) -> Result<Option<Fence>, StoreError> {
    let row = sqlx::query(include_str!("sql/fence.sql"))
        .bind(election.as_str())
        .fetch_optional(connection)
        .await
        .map_err(at(operation))?;
    row.as_ref().map(fence_of).transpose().map_err(at(operation))
}

fn fence_of(row: &PgRow) -> Result<Fence, sqlx::Error> {
    let term: i64 = row.try_get("term")?;
    let tenure: Uuid = row.try_get("tenure_id")?;
    let term = Term::new(term).ok_or_else(|| sqlx::Error::Decode("a term below zero".into()))?;
    Ok(Fence { holder: FenceHolder { term, tenure_id: TenureId(tenure) }, halt: halt_of(row)? })
}

/// The halt of a row of the fence.
pub(super) fn halt_of(row: &PgRow) -> Result<Option<Halt>, sqlx::Error> {
    match row.try_get("halted_at")? {
        Some(since) => Ok(Some(Halt { reason: row.try_get("halt_reason")?, since, by: row.try_get("halted_by")? })),
        None => Ok(None),
    }
}

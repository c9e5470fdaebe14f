//! Which coordinator the store's terms come from, the store's time, and notes on tenures: unfenced.

use chrono::{DateTime, Utc};
use sqlx::Row;
use sqlx::sqlite::SqliteConnection;

use super::columns::{id, id_text, micros, time};
use super::error::at;
use super::tx::Done;
use crate::domain::Claim;
use crate::store::{BindOutcome, CoordinatorBinding, StoreError};

/// The store's time.
pub(super) async fn now(connection: &mut SqliteConnection) -> Result<DateTime<Utc>, StoreError> {
    let row = sqlx::query(include_str!("sql/now.sql")).fetch_one(connection).await.map_err(at("now"))?;
    time(&row, "now").map_err(at("now"))
}

/// How a bound deployment compares; `None` where it is not bound yet. Only reads: a replica that starts beside one that stands
/// still with the write lock must get so far as to lead, or nobody would ever end that one.
pub(super) async fn compare(
    connection: &mut SqliteConnection,
    coordinator: &CoordinatorBinding,
) -> Result<Option<BindOutcome>, StoreError> {
    let operation = "bind";
    let row = sqlx::query(include_str!("sql/binding.sql")).fetch_one(connection).await.map_err(at(operation))?;
    let kind: Option<String> = row.try_get("coordinator_kind").map_err(at(operation))?;
    let prefix: Option<String> = row.try_get("coordinator_prefix").map_err(at(operation))?;
    let Some((kind, prefix)) = kind.zip(prefix) else { return Ok(None) };
    let found = CoordinatorBinding { kind, prefix };
    if found != *coordinator {
        return Ok(Some(BindOutcome::Other(found)));
    }
    Ok(Some(BindOutcome::Bound { deployment_id: id(&row, "deployment_id").map_err(at(operation))? }))
}

/// Binds the deployment where it is not bound, then compares.
pub(super) async fn bind(
    connection: &mut SqliteConnection,
    coordinator: &CoordinatorBinding,
) -> Result<Done<BindOutcome>, StoreError> {
    let operation = "bind";
    sqlx::query(include_str!("sql/bind.sql"))
        .bind(coordinator.kind.as_str())
        .bind(coordinator.prefix.as_str())
        .execute(&mut *connection)
        .await
        .map_err(at(operation))?;
    let outcome = compare(connection, coordinator).await?;
    let unbound = || StoreError::Broken { operation, detail: "the deployment has no row to bind".to_owned() };
    outcome.map(Done::Commit).ok_or_else(unbound)
}

/// Notes when a tenure first worked.
pub(super) async fn note_work(
    connection: &mut SqliteConnection,
    claim: &Claim,
    worked_at: DateTime<Utc>,
) -> Result<Done<()>, StoreError> {
    let note = sqlx::query(include_str!("sql/note_work.sql"))
        .bind(claim.election.as_str())
        .bind(claim.term.get())
        .bind(id_text(claim.tenure_id.0))
        .bind(micros(worked_at));
    let noted = note.execute(connection).await.map_err(at("note_work"))?;
    say_unless_found(claim, noted.rows_affected());
    Ok(Done::Commit(()))
}

/// Notes how a tenure ended.
pub(super) async fn note_end(
    connection: &mut SqliteConnection,
    claim: &Claim,
    reason: &str,
    ended_at: Option<DateTime<Utc>>,
) -> Result<Done<()>, StoreError> {
    let note = sqlx::query(include_str!("sql/note_end.sql"))
        .bind(claim.election.as_str())
        .bind(claim.term.get())
        .bind(id_text(claim.tenure_id.0))
        .bind(reason)
        .bind(ended_at.map(micros));
    let noted = note.execute(connection).await.map_err(at("note_end"))?;
    say_unless_found(claim, noted.rows_affected());
    Ok(Done::Commit(()))
}

fn say_unless_found(claim: &Claim, found: u64) {
    if found == 0 {
        tracing::debug!(%claim, "no such term in the history: it was never accepted");
    }
}

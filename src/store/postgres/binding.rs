//! Which coordinator the store's terms come from, the store's time, and notes on tenures: unfenced single statements.

use chrono::{DateTime, Utc};
use sqlx::Row;
use sqlx::postgres::PgConnection;

use super::error::at;
use crate::domain::Claim;
use crate::store::{BindOutcome, CoordinatorBinding, StoreError};

/// The store's time.
pub(super) async fn now(connection: &mut PgConnection) -> Result<DateTime<Utc>, StoreError> {
    sqlx::query_scalar(include_str!("sql/now.sql")).fetch_one(connection).await.map_err(at("now"))
}

/// Binds the deployment where it is not bound, then compares.
pub(super) async fn bind(
    connection: &mut PgConnection,
    coordinator: &CoordinatorBinding,
) -> Result<BindOutcome, StoreError> {
    let operation = "bind";
    sqlx::query(include_str!("sql/bind.sql"))
        .bind(coordinator.kind.as_str())
        .bind(coordinator.prefix.as_str())
        .execute(&mut *connection)
        .await
        .map_err(at(operation))?;
    let row = sqlx::query(include_str!("sql/binding.sql")).fetch_one(connection).await.map_err(at(operation))?;
    let found = CoordinatorBinding {
        kind: row.try_get("coordinator_kind").map_err(at(operation))?,
        prefix: row.try_get("coordinator_prefix").map_err(at(operation))?,
    };
    if found == *coordinator {
        Ok(BindOutcome::Bound { deployment_id: row.try_get("deployment_id").map_err(at(operation))? })
    } else {
        Ok(BindOutcome::Other(found))
    }
}

/// Notes when a tenure first worked.
pub(super) async fn note_work(
    connection: &mut PgConnection,
    claim: &Claim,
    worked_at: DateTime<Utc>,
) -> Result<(), StoreError> {
    let note = sqlx::query(include_str!("sql/note_work.sql"))
        .bind(claim.election.as_str())
        .bind(claim.term.get())
        .bind(claim.tenure_id.0)
        .bind(worked_at);
    let noted = note.execute(connection).await.map_err(at("note_work"))?;
    say_unless_found(claim, noted.rows_affected());
    Ok(())
}

/// Notes how a tenure ended.
pub(super) async fn note_end(
    connection: &mut PgConnection,
    claim: &Claim,
    reason: &str,
    ended_at: Option<DateTime<Utc>>,
) -> Result<(), StoreError> {
    let note = sqlx::query(include_str!("sql/note_end.sql"))
        .bind(claim.election.as_str())
        .bind(claim.term.get())
        .bind(claim.tenure_id.0)
        .bind(reason)
        .bind(ended_at);
    let noted = note.execute(connection).await.map_err(at("note_end"))?;
    say_unless_found(claim, noted.rows_affected());
    Ok(())
}

fn say_unless_found(claim: &Claim, found: u64) {
    if found == 0 {
        tracing::debug!(%claim, "no such term in the history: it was never accepted");
    }
}

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

/// Notes when a tenure first worked, or how it ended. A second note of the same kind changes nothing.
pub(super) async fn note_tenure(
    connection: &mut PgConnection,
    claim: &Claim,
    ended: Option<&str>,
) -> Result<(), StoreError> {
    let noted = sqlx::query(include_str!("sql/note_tenure.sql"))
        .bind(claim.election.as_str())
        .bind(claim.term.get())
        .bind(claim.tenure_id.0)
        .bind(ended)
        .execute(connection)
        .await
        .map_err(at("note_tenure"))?;
    if noted.rows_affected() == 0 {
        tracing::debug!(%claim, "no such term in the history: it was never accepted");
    }
    Ok(())
}

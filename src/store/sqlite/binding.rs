//! Which coordinator the store's terms come from, the store's time, and notes on tenures: unfenced.

use chrono::{DateTime, Utc};
use sqlx::Row;
use sqlx::sqlite::SqliteConnection;

use super::columns::{id, id_text, time};
use super::error::at;
use super::tx::Done;
use crate::domain::Claim;
use crate::store::{BindOutcome, CoordinatorBinding, StoreError};

/// The store's time.
pub(super) async fn now(connection: &mut SqliteConnection) -> Result<DateTime<Utc>, StoreError> {
    let row = sqlx::query(include_str!("sql/now.sql")).fetch_one(connection).await.map_err(at("now"))?;
    time(&row, "now").map_err(at("now"))
}

/// Compares, where the deployment is bound; reads only.
pub(super) async fn bound(
    connection: &mut SqliteConnection,
    coordinator: &CoordinatorBinding,
) -> Result<Option<BindOutcome>, StoreError> {
    let operation = "bind";
    let row = sqlx::query(include_str!("sql/binding.sql")).fetch_one(connection).await.map_err(at(operation))?;
    let (kind, prefix): (Option<String>, Option<String>) = (
        row.try_get("coordinator_kind").map_err(at(operation))?,
        row.try_get("coordinator_prefix").map_err(at(operation))?,
    );
    let (Some(kind), Some(prefix)) = (kind, prefix) else { return Ok(None) };
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
    let bound = sqlx::query(include_str!("sql/bind.sql"))
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
    if found != *coordinator {
        return Ok(Done::RollBack(BindOutcome::Other(found)));
    }
    let outcome = BindOutcome::Bound { deployment_id: id(&row, "deployment_id").map_err(at(operation))? };
    Ok(if bound.rows_affected() == 0 { Done::RollBack(outcome) } else { Done::Commit(outcome) })
}

/// Notes when a tenure first worked, or how it ended. A second note of the same kind changes nothing.
pub(super) async fn note_tenure(
    connection: &mut SqliteConnection,
    claim: &Claim,
    ended: Option<&str>,
) -> Result<Done<()>, StoreError> {
    let noted = sqlx::query(include_str!("sql/note_tenure.sql"))
        .bind(claim.election.as_str())
        .bind(claim.term.get())
        .bind(id_text(claim.tenure_id.0))
        .bind(ended)
        .execute(connection)
        .await
        .map_err(at("note_tenure"))?;
    if noted.rows_affected() == 0 {
        tracing::debug!(%claim, "no such term in the history: it was never accepted");
    }
    Ok(Done::Commit(()))
}

//! Acts of operators: who did what, to what, from where and why, in the transaction that does it.

use sqlx::sqlite::SqliteConnection;

use super::error::at;
use crate::store::{Actor, StoreError};

/// One act, as it is written down.
#[derive(Debug, Clone)]
pub(super) struct Act<'a> {
    /// What, as a word of the command line (`halt`, `import`).
    pub(super) action: &'static str,
    /// On what.
    pub(super) target: &'a str,
    /// Why.
    pub(super) reason: Option<&'a str>,
    /// The election acted on, and the term found there.
    pub(super) election: Option<&'a str>,
    pub(super) term: Option<i64>,
    /// Whatever else a reader of the history wants.
    pub(super) details: Option<serde_json::Value>,
}

/// Writes an act and answers its id.
pub(super) async fn write(
    connection: &mut SqliteConnection,
    operation: &'static str,
    actor: &Actor,
    act: Act<'_>,
) -> Result<i64, StoreError> {
    sqlx::query_scalar(include_str!("sql/act_insert.sql"))
        .bind(actor.user.as_str())
        .bind(actor.host.as_str())
        .bind(act.action)
        .bind(act.target)
        .bind(act.reason)
        .bind(act.election)
        .bind(act.term)
        .bind(act.details.map(|details| details.to_string()))
        .fetch_one(connection)
        .await
        .map_err(at(operation))
}

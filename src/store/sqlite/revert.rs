//! Taking imports back.

use sqlx::sqlite::SqliteConnection;

use super::tx::Done;
use crate::store::{Actor, RevertOutcome, StoreError};

/// Not written yet.
#[expect(clippy::unused_async, reason = "not written yet")]
pub(super) async fn revert_import(
    _connection: &mut SqliteConnection,
    _import: i64,
    _reason: &str,
    _actor: &Actor,
) -> Result<Done<RevertOutcome>, StoreError> {
    Err(StoreError::Broken { operation: "revert_import", detail: "not written yet".to_owned() })
}

//! Imports.

use sqlx::sqlite::SqliteConnection;

use super::tx::Done;
use crate::store::{Actor, ImportOutcome, ImportRecord, ImportView, NewImport, StoreError};

/// Not written yet.
#[expect(clippy::unused_async, reason = "not written yet")]
pub(super) async fn import(
    _connection: &mut SqliteConnection,
    _import: &NewImport,
    _actor: &Actor,
) -> Result<Done<ImportOutcome>, StoreError> {
    Err(StoreError::Broken { operation: "import", detail: "not written yet".to_owned() })
}

/// Not written yet.
#[expect(clippy::unused_async, reason = "not written yet")]
pub(super) async fn imports(_connection: &mut SqliteConnection, _limit: u32) -> Result<Vec<ImportRecord>, StoreError> {
    Err(StoreError::Broken { operation: "imports", detail: "not written yet".to_owned() })
}

/// Not written yet.
#[expect(clippy::unused_async, reason = "not written yet")]
pub(super) async fn import_by_id(
    _connection: &mut SqliteConnection,
    _import: i64,
) -> Result<Option<ImportView>, StoreError> {
    Err(StoreError::Broken { operation: "import_by_id", detail: "not written yet".to_owned() })
}

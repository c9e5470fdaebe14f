//! Elections, jobs, open runs.

use sqlx::sqlite::SqliteConnection;

use crate::store::{StatusView, StoreError};

/// Not written yet.
#[expect(clippy::unused_async, reason = "not written yet")]
pub(super) async fn status(_connection: &mut SqliteConnection) -> Result<StatusView, StoreError> {
    Err(StoreError::Broken { operation: "status", detail: "not written yet".to_owned() })
}

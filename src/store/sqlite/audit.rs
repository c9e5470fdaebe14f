//! The audit.

use sqlx::sqlite::SqliteConnection;

use crate::store::{AuditReport, StoreError};

/// Not written yet.
#[expect(clippy::unused_async, reason = "not written yet")]
pub(super) async fn audit(_connection: &mut SqliteConnection) -> Result<AuditReport, StoreError> {
    Err(StoreError::Broken { operation: "audit", detail: "not written yet".to_owned() })
}

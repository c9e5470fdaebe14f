//! Terms, refusals, acts.

use sqlx::sqlite::SqliteConnection;

use crate::store::{HistoryView, StoreError};

/// Not written yet.
#[expect(clippy::unused_async, reason = "not written yet")]
pub(super) async fn history(_connection: &mut SqliteConnection, _limit: u32) -> Result<HistoryView, StoreError> {
    Err(StoreError::Broken { operation: "history", detail: "not written yet".to_owned() })
}

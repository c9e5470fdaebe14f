//! Figures for metrics.

use sqlx::sqlite::SqliteConnection;

use crate::domain::ElectionName;
use crate::store::{StoreError, StoreFigures};

/// Not written yet.
#[expect(clippy::unused_async, reason = "not written yet")]
pub(super) async fn figures(
    _connection: &mut SqliteConnection,
    _election: &ElectionName,
) -> Result<StoreFigures, StoreError> {
    Err(StoreError::Broken { operation: "figures", detail: "not written yet".to_owned() })
}

//! Lists of runs.

use sqlx::sqlite::SqliteConnection;

use crate::store::{RunFilter, RunSummary, RunView, StoreError};

/// Not written yet.
#[expect(clippy::unused_async, reason = "not written yet")]
pub(super) async fn runs(
    _connection: &mut SqliteConnection,
    _filter: &RunFilter,
) -> Result<Vec<RunSummary>, StoreError> {
    Err(StoreError::Broken { operation: "runs", detail: "not written yet".to_owned() })
}

/// Not written yet.
#[expect(clippy::unused_async, reason = "not written yet")]
pub(super) async fn run_by_id(_connection: &mut SqliteConnection, _run: i64) -> Result<Option<RunView>, StoreError> {
    Err(StoreError::Broken { operation: "run_by_id", detail: "not written yet".to_owned() })
}

//! Not written yet.

use sqlx::sqlite::SqliteConnection;

use super::tx::Done;
use crate::domain::Claim;
use crate::store::{FinishOutcome, StoreError};

/// Not written yet.
#[expect(clippy::unused_async, reason = "not written yet")]
pub(super) async fn finish_run(_connection: &mut SqliteConnection, _claim: &Claim, _run: i64) -> Result<Done<FinishOutcome>, StoreError> {
    Err(StoreError::Broken { operation: "finish_run", detail: "not written yet".to_owned() })
}

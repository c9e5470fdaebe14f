//! Executing requests.

use sqlx::sqlite::SqliteConnection;
use uuid::Uuid;

use super::tx::Done;
use crate::domain::Claim;
use crate::store::{Execution, RequestState, StoreError};

/// Not written yet.
#[expect(clippy::unused_async, reason = "not written yet")]
pub(super) async fn execute(
    _connection: &mut SqliteConnection,
    _claim: &Claim,
    _request: Uuid,
    _execution: &Execution,
) -> Result<Done<RequestState>, StoreError> {
    Err(StoreError::Broken { operation: "execute", detail: "not written yet".to_owned() })
}

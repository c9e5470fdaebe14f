//! Not written yet.

use sqlx::sqlite::SqliteConnection;
use uuid::Uuid;

use super::tx::Done;
use crate::domain::Claim;
use crate::store::{Call, CallRecord, OpenRun, StoreError};

/// Not written yet.
#[expect(clippy::unused_async, reason = "not written yet")]
pub(super) async fn take_calls(_connection: &mut SqliteConnection, _claim: &Claim, _deployment: Uuid, _run: &OpenRun, _limit: u32) -> Result<Done<Vec<Call>>, StoreError> {
    Err(StoreError::Broken { operation: "take_calls", detail: "not written yet".to_owned() })
}

/// Not written yet.
#[expect(clippy::unused_async, reason = "not written yet")]
pub(super) async fn record_calls(_connection: &mut SqliteConnection, _claim: &Claim, _run: i64, _records: &[CallRecord]) -> Result<Done<u64>, StoreError> {
    Err(StoreError::Broken { operation: "record_calls", detail: "not written yet".to_owned() })
}

/// Not written yet.
#[expect(clippy::unused_async, reason = "not written yet")]
pub(super) async fn put_back(_connection: &mut SqliteConnection, _claim: &Claim, _run: i64, _kept: &[(i64, u32)]) -> Result<Done<u64>, StoreError> {
    Err(StoreError::Broken { operation: "put_back", detail: "not written yet".to_owned() })
}

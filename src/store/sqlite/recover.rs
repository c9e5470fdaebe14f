//! Not written yet.

use sqlx::sqlite::SqliteConnection;

use super::tx::Done;
use crate::domain::Claim;
use crate::store::{Recovery, StoreError};

/// Not written yet.
#[expect(clippy::unused_async, reason = "not written yet")]
pub(super) async fn recover(_connection: &mut SqliteConnection, _claim: &Claim) -> Result<Done<Recovery>, StoreError> {
    Err(StoreError::Broken { operation: "recover", detail: "not written yet".to_owned() })
}

/// Not written yet.
#[expect(clippy::unused_async, reason = "not written yet")]
pub(super) async fn release(_connection: &mut SqliteConnection, _claim: &Claim) -> Result<Done<()>, StoreError> {
    Err(StoreError::Broken { operation: "release", detail: "not written yet".to_owned() })
}

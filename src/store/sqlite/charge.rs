//! Not written yet.

use sqlx::sqlite::SqliteConnection;

use super::tx::Done;
use crate::domain::Claim;
use crate::store::{Charge, StoreError};

/// Not written yet.
#[expect(clippy::unused_async, reason = "not written yet")]
pub(super) async fn charge(_connection: &mut SqliteConnection, _claim: &Claim, _run: i64, _charges: &[Charge]) -> Result<Done<u64>, StoreError> {
    Err(StoreError::Broken { operation: "charge", detail: "not written yet".to_owned() })
}

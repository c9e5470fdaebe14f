//! Not written yet.

use sqlx::sqlite::SqliteConnection;
use uuid::Uuid;

use super::tx::Done;
use crate::domain::Claim;
use crate::store::{Effect, OpenRun, SettleOutcome, StoreError, UnitPick};

/// Not written yet.
#[expect(clippy::unused_async, reason = "not written yet")]
pub(super) async fn settle(_connection: &mut SqliteConnection, _claim: &Claim, _deployment: Uuid, _run: &OpenRun, _pick: &UnitPick, _effect: &Effect) -> Result<Done<SettleOutcome>, StoreError> {
    Err(StoreError::Broken { operation: "settle", detail: "not written yet".to_owned() })
}

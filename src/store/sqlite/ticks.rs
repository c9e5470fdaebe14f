//! Not written yet.

use sqlx::sqlite::SqliteConnection;

use super::tx::Done;
use crate::domain::Claim;
use crate::store::{StoreError, TicksOutcome, TicksRecord};

/// Not written yet.
#[expect(clippy::unused_async, reason = "not written yet")]
pub(super) async fn record_ticks(_connection: &mut SqliteConnection, _claim: &Claim, _record: &TicksRecord) -> Result<Done<TicksOutcome>, StoreError> {
    Err(StoreError::Broken { operation: "record_ticks", detail: "not written yet".to_owned() })
}

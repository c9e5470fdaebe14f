//! Not written yet.

use sqlx::sqlite::SqliteConnection;

use super::tx::Done;
use crate::domain::Claim;
use crate::store::{OpenRun, PlanOutcome, PlanSource, StoreError};

/// Not written yet.
#[expect(clippy::unused_async, reason = "not written yet")]
pub(super) async fn plan_page(_connection: &mut SqliteConnection, _claim: &Claim, _run: &OpenRun, _source: &PlanSource, _after: Option<&str>, _limit: u32) -> Result<Done<PlanOutcome>, StoreError> {
    Err(StoreError::Broken { operation: "plan_page", detail: "not written yet".to_owned() })
}

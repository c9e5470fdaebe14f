//! Not written yet.

use sqlx::sqlite::SqliteConnection;

use super::readable::Said;
use super::tx::Done;
use crate::domain::Claim;
use crate::store::{JobChange, JobChangeOutcome, JobsView, StoreError};

/// Not written yet.
#[expect(clippy::unused_async, reason = "not written yet")]
pub(super) async fn jobs(_connection: &mut SqliteConnection, _claim: &Claim, _said: &Said) -> Result<Done<JobsView>, StoreError> {
    Err(StoreError::Broken { operation: "jobs", detail: "not written yet".to_owned() })
}

/// Not written yet.
#[expect(clippy::unused_async, reason = "not written yet")]
pub(super) async fn change_job(_connection: &mut SqliteConnection, _claim: &Claim, _change: &JobChange) -> Result<Done<JobChangeOutcome>, StoreError> {
    Err(StoreError::Broken { operation: "change_job", detail: "not written yet".to_owned() })
}

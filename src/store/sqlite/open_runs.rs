//! Not written yet.

use sqlx::sqlite::SqliteConnection;

use super::readable::Said;
use super::tx::Done;
use crate::domain::Claim;
use crate::store::{OpenRun, Pulse, StoreError};

/// Not written yet.
#[expect(clippy::unused_async, reason = "not written yet")]
pub(super) async fn pulse(_connection: &mut SqliteConnection, _claim: &Claim) -> Result<Done<Pulse>, StoreError> {
    Err(StoreError::Broken { operation: "pulse", detail: "not written yet".to_owned() })
}

/// Not written yet.
#[expect(clippy::unused_async, reason = "not written yet")]
pub(super) async fn open_runs(_connection: &mut SqliteConnection, _claim: &Claim, _said: &Said) -> Result<Done<Vec<OpenRun>>, StoreError> {
    Err(StoreError::Broken { operation: "open_runs", detail: "not written yet".to_owned() })
}

/// Not written yet.
#[expect(clippy::unused_async, reason = "not written yet")]
pub(super) async fn begin_work(_connection: &mut SqliteConnection, _claim: &Claim, _run: i64) -> Result<Done<()>, StoreError> {
    Err(StoreError::Broken { operation: "begin_work", detail: "not written yet".to_owned() })
}

//! Requests of operators.

use sqlx::sqlite::SqliteConnection;
use uuid::Uuid;

use super::readable::Said;
use super::tx::Done;
use crate::domain::Claim;
use crate::store::{Actor, PendingRequest, RequestKind, RequestState, StoreError};

/// Not written yet.
#[expect(clippy::unused_async, reason = "not written yet")]
pub(super) async fn file(
    _connection: &mut SqliteConnection,
    _kind: &RequestKind,
    _actor: &Actor,
    _reason: Option<&str>,
) -> Result<Done<Uuid>, StoreError> {
    Err(StoreError::Broken { operation: "request", detail: "not written yet".to_owned() })
}

/// Not written yet.
#[expect(clippy::unused_async, reason = "not written yet")]
pub(super) async fn state(
    _connection: &mut SqliteConnection,
    _request: Uuid,
) -> Result<Option<RequestState>, StoreError> {
    Err(StoreError::Broken { operation: "request_state", detail: "not written yet".to_owned() })
}

/// Not written yet.
#[expect(clippy::unused_async, reason = "not written yet")]
pub(super) async fn requests(
    _connection: &mut SqliteConnection,
    _claim: &Claim,
    _said: &Said,
) -> Result<Done<Vec<PendingRequest>>, StoreError> {
    Err(StoreError::Broken { operation: "requests", detail: "not written yet".to_owned() })
}

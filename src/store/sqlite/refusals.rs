//! Refusals, written down after the rollback on a connection that belongs to no tenure. Best effort, and aside: whoever was
//! refused is told first, for nothing may delay the end of its tenure.

use std::sync::Arc;

use sqlx::sqlite::SqliteConnection;

use super::columns::id_text;
use super::error::at;
use super::sessions::Sessions;
use super::store::finish;
use super::tx::{Done, begin_immediate};
use super::within::{REJECT, within};
use crate::domain::Claim;
use crate::store::{FenceHolder, StoreError};

const OPERATION: &str = "fence_reject";

/// One refusal.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) claim: Claim,
    pub(super) found: Option<FenceHolder>,
    pub(super) operation: &'static str,
    pub(super) replica: String,
}

/// Writes a refusal down.
pub(super) async fn note(control: Arc<Sessions>, refusal: Refusal) {
    let noted = within(OPERATION, REJECT, async {
        let mut tx = begin_immediate(&control, OPERATION).await?;
        let worked = insert(tx.conn(), &refusal).await;
        finish(tx, worked).await
    })
    .await;
    if let Err(error) = noted {
        let Refusal { claim, operation, .. } = &refusal;
        tracing::warn!(operation, %claim, %error, "a refusal could not be written down");
    }
}

async fn insert(connection: &mut SqliteConnection, refusal: &Refusal) -> Result<Done<()>, StoreError> {
    let Refusal { claim, found, operation, replica } = refusal;
    sqlx::query(include_str!("sql/fence_reject.sql"))
        .bind(claim.election.as_str())
        .bind(claim.term.get())
        .bind(id_text(claim.tenure_id.0))
        .bind(found.map(|holder| holder.term.get()))
        .bind(found.map(|holder| id_text(holder.tenure_id.0)))
        .bind(*operation)
        .bind(replica.as_str())
        .execute(connection)
        .await
        .map_err(at(OPERATION))?;
    Ok(Done::Commit(()))
}

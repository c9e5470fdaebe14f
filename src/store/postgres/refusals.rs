//! Refusals, written down after the rollback from a pool that belongs to no tenure. Best effort, and aside: whoever was
//! refused is told first, for nothing may delay the end of its tenure.

use std::sync::Arc;

use super::error::at;
use super::sessions::Sessions;
use super::within::{REJECT, within};
use crate::domain::Claim;
use crate::store::FenceHolder;

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
    let Refusal { claim, found, operation, replica } = refusal;
    let noted = within("fence_reject", REJECT, async {
        let mut held = control.acquire("fence_reject").await?;
        sqlx::query(include_str!("sql/fence_reject.sql"))
            .bind(claim.election.as_str())
            .bind(claim.term.get())
            .bind(claim.tenure_id.0)
            .bind(found.map(|holder| holder.term.get()))
            .bind(found.map(|holder| holder.tenure_id.0))
            .bind(operation)
            .bind(replica.as_str())
            .execute(held.connection())
            .await
            .map_err(at("fence_reject"))?;
        held.give_back();
        Ok(())
    })
    .await;
    if let Err(error) = noted {
        tracing::warn!(operation, %claim, %error, "a refusal could not be written down");
    }
}

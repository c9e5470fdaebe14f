//! A receiver says that it has seen a higher token than ours: the fence is read again. Either the tenure is over, or the receiver
//! is wrong.

use super::scope::{Stop, Tenure};

/// Whether the fence still says that ours is the highest. Where it says that it is not, or cannot be read, nothing is known against
/// the receiver: what was to be sent is as it was before.
pub(super) async fn is_contradicted(tenure: &Tenure, highest: i64) -> bool {
    match tenure.enter("pulse", tenure.store.pulse().await).await {
        // Refused: the tenure is ending, and so is its right to record this.
        Err(Stop::Ending) => false,
        Ok(Ok(_)) | Err(Stop::Halted) => {
            tracing::error!(claim = %tenure.claim, highest, "a receiver has seen a higher token than the fence; `resume --term-above` lifts the term");
            true
        }
        Ok(Err(error)) | Err(Stop::Failed(error)) => {
            tracing::warn!(claim = %tenure.claim, %error, "the fence could not be read again after a receiver refused our token");
            false
        }
    }
}

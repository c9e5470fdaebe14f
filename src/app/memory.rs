//! What the coordinator remembers of the store, for tenures: their port over the coordinator's keys.
//!
//! Deliberately absent: judging it. A tenure compares, this only reads and writes.

use std::sync::Arc;

use async_trait::async_trait;

use crate::domain::{Claim, ElectionName};
use crate::leadership::Coordinator;
use crate::leadership::record::{AcceptedOutcome, Win};
use crate::tenure::{AcceptedMemory, AcceptedRecord, MemoryError};

/// The memory as one tenure writes it: under its own win.
pub(super) struct CoordinatorMemory {
    coordinator: Arc<dyn Coordinator>,
    won: Win,
}

impl CoordinatorMemory {
    /// `coordinator` belongs to the runtime that tenures run on.
    pub(super) fn new(coordinator: Arc<dyn Coordinator>, won: Win) -> Self {
        Self { coordinator, won }
    }
}

#[async_trait]
impl AcceptedMemory for CoordinatorMemory {
    async fn get(&self, election: &ElectionName) -> Result<Option<AcceptedRecord>, MemoryError> {
        let text = self.coordinator.read_accepted(election).await.map_err(|error| MemoryError(error.to_string()))?;
        let read = |text: String| {
            serde_json::from_str(&text).map_err(|error| {
                MemoryError(format!(
                    "the key `accepted` of {election} holds what bursar never writes ({error}): {text:.80}"
                ))
            })
        };
        text.map(read).transpose()
    }

    async fn put(&self, claim: &Claim, record: &AcceptedRecord) -> Result<(), MemoryError> {
        let text = serde_json::to_string(record).map_err(|error| MemoryError(error.to_string()))?;
        match self.coordinator.put_accepted(&claim.election, self.won, &text).await {
            Ok(AcceptedOutcome::Noted) => Ok(()),
            Ok(AcceptedOutcome::NotLeader { found }) => {
                let found = found.map_or_else(|| "no leader key".to_owned(), |leader| format!("{:?}", leader.revision));
                Err(MemoryError(format!("the leader key is not from this win any more: found {found}")))
            }
            Err(error) => Err(MemoryError(error.to_string())),
        }
    }
}

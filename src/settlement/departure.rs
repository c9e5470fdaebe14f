//! Leave to send: asked for right before the first byte of a call. Refused once the tenure stops or its session is lost;
//! waits while the session is suspect. What was given leave and did not answer is unknown; what was not, had no effect.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;

/// Leave was refused: no byte may leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("leadership is ending: nothing is sent")]
pub struct NotSent;

/// Who gives leave.
#[async_trait]
pub trait Leave: Send + Sync {
    /// Waits while the session is suspect.
    ///
    /// # Errors
    /// [`NotSent`] once nothing may begin any more.
    async fn leave(&self) -> Result<(), NotSent>;
}

/// One call's leave, and whether it was given.
#[derive(Clone)]
pub struct Departure {
    leave: Arc<dyn Leave>,
    departed: Arc<AtomicBool>,
}

impl Departure {
    /// For one call.
    #[must_use]
    pub fn new(leave: Arc<dyn Leave>) -> Self {
        Self { leave, departed: Arc::new(AtomicBool::new(false)) }
    }

    /// Asks for leave.
    ///
    /// # Errors
    /// [`NotSent`]: answer [`super::CallOutcome::NotSent`].
    pub async fn depart(&self) -> Result<(), NotSent> {
        self.leave.leave().await?;
        self.departed.store(true, Ordering::SeqCst);
        Ok(())
    }

    /// Whether leave was given.
    #[must_use]
    pub fn has_departed(&self) -> bool {
        self.departed.load(Ordering::SeqCst)
    }
}

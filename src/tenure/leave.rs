//! Leave to send, as a tenure gives it: the gate, then the halt, then the byte.
//!
//! Calls wait here while the session is suspect, and an operator may halt meanwhile: nothing is in a transaction then, so
//! the halt is in force at once. So a call leaves on a halt that was read after it asked and after the gate was last found
//! open. One reading serves all calls that wait for it.

use std::time::Duration;

use async_trait::async_trait;

use super::scope::{Scope, Tenure};
use crate::clock;
use crate::domain::Moment;
use crate::settlement::{Departure, Leave, NotSent};
use crate::store::{Entered, StoreError};

/// How long the gate may take to be passed after the halt was read; longer, and it was held: the halt is read again.
const FRESH: Duration = Duration::from_millis(250);

/// When the election was last read as not halted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unhalted {
    sent_at: Moment,
    answered_at: Moment,
}

/// Returns once a try must end here: at once where the tenure stops and no leave was given, else when the drain is over. Looked at
/// in the task that asks for leave, so that none is given in between.
pub(super) async fn handed_over(tenure: &Tenure, departure: &Departure) {
    tenure.stopping.cancelled().await;
    if departure.has_departed() {
        tenure.answers.cancelled().await;
    }
}

#[async_trait]
impl Leave for Scope {
    async fn leave(&self) -> Result<(), NotSent> {
        let asked_at = clock::boottime();
        loop {
            if !crate::mutant!("leave.gate-only-before-the-commit") {
                self.pass_gate().await.map_err(|_| NotSent)?;
            }
            crate::mutant!("leave.halt-not-read-again" => return Ok(()););
            let mut last = self.unhalted.lock().await;
            if last.is_some_and(|last| last.sent_at >= asked_at && clock::boottime().since(last.answered_at) < FRESH) {
                return Ok(());
            }
            *last = Some(self.read_halt().await?);
        }
    }
}

impl Scope {
    async fn read_halt(&self) -> Result<Unhalted, NotSent> {
        let store = self.store.get().ok_or(NotSent)?;
        let sent_at = clock::boottime();
        match store.pulse().await {
            Ok(Entered::Mine(_)) => Ok(Unhalted { sent_at, answered_at: clock::boottime() }),
            Ok(Entered::Halted(halt)) => {
                self.found_halted(&halt);
                Err(NotSent)
            }
            Ok(Entered::Fenced(found)) => {
                self.fenced("pulse", found);
                Err(NotSent)
            }
            Err(StoreError::Ended { .. }) => Err(NotSent),
            Err(error) => {
                // Put back, charged to nobody. What it means for the tenure, the sweep finds out by the same question.
                tracing::warn!(claim = %self.claim, %error, "the halt could not be read: nothing leaves");
                Err(NotSent)
            }
        }
    }
}

//! Catching a leader at work.
//!
//! A leader that is to be killed or stopped in the middle of a run is stopped first and the store looked at then: so it is
//! in the middle, and not a moment before or after. One that is to stay stopped and stands inside a write transaction is let
//! go on and caught again: there it would keep every other process out of the file.

use std::time::Duration;

use super::stage::{LOOK_EVERY, Stage, system};
use crate::cli::error::CommandError;
use crate::clock;
use crate::store::{RunSummary, TermView};

/// How long a leader is tried to be caught in the middle of a run.
const CAUGHT_WITHIN: Duration = Duration::from_mins(1);
/// The longest pause before one that stood inside a transaction is stopped again; drawn, so as not to fall into its step.
const CATCH_AGAIN: Duration = Duration::from_millis(2);
/// So many tries between two looks at the store.
const TRIES: u32 = 20;

/// Where a leader is to be caught.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Catch {
    /// Wherever it is in the run.
    Anywhere,
    /// Where it holds no lock for writing.
    BetweenTransactions,
}

impl Stage {
    /// Stops the leader in the middle of a run.
    pub(super) async fn catch(&mut self, place: Catch) -> Result<(TermView, RunSummary), CommandError> {
        let until = clock::boottime() + CAUGHT_WITHIN;
        while clock::boottime() < until {
            self.look().await?;
            let (Some(term), Some(_)) = (self.sight.leader().cloned(), self.sight.mid_run()) else {
                tokio::time::sleep(LOOK_EVERY).await;
                continue;
            };
            if self.stop_at(&term.replica, place).await? {
                self.look().await?;
                if let Some(run) = self.sight.mid_run().cloned() {
                    return Ok((term, run));
                }
                self.replicas.wake(&term.replica).map_err(system("cannot wake a replica"))?;
            }
        }
        Err(self.gave_up("a leader in the middle of a run"))
    }

    /// Stops a replica; where it does not stand as it should, lets it go on and tries again. Answers whether it is stopped.
    async fn stop_at(&mut self, id: &str, place: Catch) -> Result<bool, CommandError> {
        for _ in 0..TRIES {
            let stands_free = self.replicas.stop(id).map_err(system("cannot stop a replica"))?;
            if stands_free || place == Catch::Anywhere {
                return Ok(true);
            }
            self.replicas.wake(id).map_err(system("cannot wake a replica"))?;
            let most = u64::try_from(CATCH_AGAIN.as_micros()).unwrap_or(1);
            tokio::time::sleep(Duration::from_micros(1 + clock::random_u64() % most)).await;
        }
        Ok(false)
    }
}

//! Demotion. The order, whatever the cause:
//!
//! 1. Cancel `stopping`: nothing new begins; the timers come down with the sweep, claiming and sending stop.
//! 2. *Planned only*: wait up to `drain` for begun batches to commit and for answers under way; then what has no answer is
//!    recorded as unknown; then give the runs back, so that no successor counts a death.
//! 3. Cancel `ended`: every task is dropped where it stands.
//! 4. Close the tenure's connections and end their sessions on the server, for half the budget; beside it wait for every task,
//!    and note the end in the history of terms, best effort, from a pool that belongs to no tenure.
//! 5. Forget the tenure, then report that it has ended ([`super::supervisor`]): the next may begin at once.
//!
//! Late records and giving back take the drain's last half of a budget, and leave half of that over; the bounds of the steps after it add up to less
//! than the budget. What has not ended within it ends the process; leadership keeps that time, not this file.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::sync::watch;

use super::edge::Ending;
use super::scope::Scope;
use crate::clock;

/// The order to end, as it is handed to the tenure's task: set once, sharpened to abrupt at most once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EndOrder {
    pub(super) ending: Ending,
    pub(super) reason: String,
}

/// Ends a tenure. `orders` may sharpen a planned end to an abrupt one.
pub(super) async fn tear_down(scope: &Arc<Scope>, order: &EndOrder, orders: &mut watch::Receiver<Option<EndOrder>>) {
    let budget = scope.deps.settings.teardown_budget;
    scope.stopping.cancel();
    scope.tracker.close();
    crate::point!("tenure.teardown.start");
    match order.ending {
        Ending::Planned { drain } => {
            tokio::select! {
                biased;
                () = drained(scope, Drain::of(drain, budget)) => {}
                () = sharpened(orders) => {}
            }
        }
        Ending::Abrupt => {}
    }
    scope.answers.cancel();
    scope.ended.cancel();
    let ended_at = scope.clock.at(clock::boottime());
    let sessions = async {
        if let Some(store) = scope.store.get() {
            let ended = store.end(budget / 2).await;
            if ended.terminated > 0 || !ended.confirmed {
                tracing::info!(claim = %scope.claim, terminated = ended.terminated, confirmed = ended.confirmed, "sessions ended");
            }
        }
    };
    tokio::join!(sessions, scope.tracker.wait(), note(scope, &order.reason, ended_at, budget / 8));
    scope.deps.observer.figures_gone(&scope.claim.election);
    tracing::info!(claim = %scope.claim, reason = order.reason, "the tenure ended");
}

/// Notes the end in the history of terms, best effort.
async fn note(scope: &Scope, reason: &str, at: Option<DateTime<Utc>>, within: Duration) {
    match tokio::time::timeout(within, scope.deps.store.note_end(&scope.claim, reason, at)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(claim = %scope.claim, %error, "the end could not be noted"),
        Err(_) => tracing::warn!(claim = %scope.claim, "the end could not be noted in time"),
    }
}

/// What a drain's time is spent on, in this order.
#[derive(Debug, Clone, Copy)]
struct Drain {
    /// Waiting for batches and answers.
    answers: Duration,
    /// Recording as unknown what has no answer.
    records: Duration,
    /// Giving the runs back.
    release: Duration,
}

impl Drain {
    fn of(drain: Duration, budget: Duration) -> Self {
        // A quarter of the tail is left over: leadership began to count earlier, and at the drain's end makes it abrupt.
        let tail = budget.min(drain) / 2;
        Self { answers: drain.saturating_sub(tail), records: tail / 4, release: tail / 4 }
    }
}

/// Waits for what has begun, then gives the runs back.
async fn drained(scope: &Scope, drain: Drain) {
    if tokio::time::timeout(drain.answers, scope.tracker.wait()).await.is_err() {
        // Past the drain: calls without an answer are unknown, and that is recorded.
        scope.answers.cancel();
        if tokio::time::timeout(drain.records, scope.tracker.wait()).await.is_err() {
            tracing::warn!(claim = %scope.claim, "some work did not end in the drain and is dropped");
        }
    }
    let Some(store) = scope.store.get() else { return };
    match tokio::time::timeout(drain.release, store.release()).await {
        // A refusal means that somebody leads already: nothing is left to give back.
        Ok(Ok(_)) => {}
        Ok(Err(error)) => tracing::warn!(claim = %scope.claim, %error, "the runs could not be given back"),
        Err(_) => tracing::warn!(claim = %scope.claim, "the runs could not be given back in time"),
    }
}

/// Returns once the end is to be abrupt.
async fn sharpened(orders: &mut watch::Receiver<Option<EndOrder>>) {
    loop {
        let abrupt = match &*orders.borrow_and_update() {
            Some(order) => match order.ending {
                Ending::Abrupt => true,
                Ending::Planned { .. } => false,
            },
            None => false,
        };
        // A supervisor that is gone waits for nothing either.
        if abrupt || orders.changed().await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_planned_end_has_given_its_runs_back_well_before_it_is_made_abrupt(
            drain_ms in 1u64..600_000,
            budget_ms in 1u64..30_000,
        ) {
            let (drain, budget) = (Duration::from_millis(drain_ms), Duration::from_millis(budget_ms));
            let Drain { answers, records, release } = Drain::of(drain, budget);
            let spare = drain.saturating_sub(answers + records + release);
            prop_assert!(answers >= drain / 2);
            prop_assert!(spare >= budget.min(drain) / 4, "{spare:?} are left");
        }
    }
}

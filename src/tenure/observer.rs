//! The facts of a tenure that people look at, one method each. Counted by telemetry; nothing is decided by them.
//!
//! No method may wait or fail. What leadership knows better (takeover, teardown, terms) is not here.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::domain::run::RunState;
use crate::domain::unit::AttemptOutcome;
use crate::domain::{ElectionName, JobName};
use crate::store::StoreFigures;
use crate::telemetry::Span;

/// Takes note of facts.
pub trait TenureObserver: Send + Sync {
    /// A tick got its outcome (`run`, `caught_up`, `skipped`, `coalesced`, `missed`).
    fn tick(&self, job: &JobName, outcome: &'static str);
    /// A run was opened so long after its due time, at the store's clock.
    fn tick_lag(&self, lag: Duration);
    /// Ticks were found that had a run already.
    fn duplicate_runs_prevented(&self, count: u32);
    /// A batch took so long, committed or not.
    fn batch(&self, took: Duration);
    /// Attempts at units came to this.
    fn attempts(&self, outcome: AttemptOutcome, count: u64);
    /// Tries at payouts came to this, as a receiver's verdict names it, or `not_found` (a look-up).
    fn payout_attempts(&self, outcome: &'static str, count: u64);
    /// Units ended settled, carried or empty.
    fn units_settled(&self, count: u64);
    /// So many units more (or less) are in a transaction or on the wire; a batch counts as large as it may be.
    fn in_flight_units(&self, change: i64);
    /// The store refused the claim at this operation.
    fn fencing_reject(&self, operation: &'static str);
    /// A run ended, so long after it was opened.
    fn run_ended(&self, job: &JobName, state: RunState, took: Duration);
    /// The store's time, as just read.
    fn store_time(&self, now: DateTime<Utc>);
    /// What only the store knows, every few seconds while leading.
    fn figures(&self, election: &ElectionName, figures: &StoreFigures);
    /// This replica leads the election no more: its figures are 0 here.
    fn figures_gone(&self, election: &ElectionName);
    /// Whether spans are worth making.
    fn takes_spans(&self) -> bool {
        false
    }
    /// A piece of work is over.
    fn span(&self, _: &Span) {}
}

/// Looks away.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoObserver;

impl TenureObserver for NoObserver {
    fn tick(&self, _: &JobName, _: &'static str) {}
    fn tick_lag(&self, _: Duration) {}
    fn duplicate_runs_prevented(&self, _: u32) {}
    fn batch(&self, _: Duration) {}
    fn attempts(&self, _: AttemptOutcome, _: u64) {}
    fn payout_attempts(&self, _: &'static str, _: u64) {}
    fn units_settled(&self, _: u64) {}
    fn in_flight_units(&self, _: i64) {}
    fn fencing_reject(&self, _: &'static str) {}
    fn run_ended(&self, _: &JobName, _: RunState, _: Duration) {}
    fn store_time(&self, _: DateTime<Utc>) {}
    fn figures(&self, _: &ElectionName, _: &StoreFigures) {}
    fn figures_gone(&self, _: &ElectionName) {}
}

/// Counts units as in flight until it is dropped, also where its future is.
pub(super) struct InFlight {
    observer: Arc<dyn TenureObserver>,
    units: i64,
}

impl InFlight {
    pub(super) fn new(observer: &Arc<dyn TenureObserver>, units: u64) -> Self {
        let units = i64::try_from(units).unwrap_or(i64::MAX);
        observer.in_flight_units(units);
        Self { observer: Arc::clone(observer), units }
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.observer.in_flight_units(-self.units);
    }
}

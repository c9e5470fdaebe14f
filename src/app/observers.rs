//! What leadership and tenures observe, counted and put on the board.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::board::Board;
use crate::domain::run::RunState;
use crate::domain::unit::AttemptOutcome;
use crate::domain::{ElectionName, JobName};
use crate::leadership::{Observer, ReplicaRecord, SessionState, TransitionReason};
use crate::store::StoreFigures;
use crate::telemetry::{Labels, Span};
use crate::tenure::TenureObserver;

/// The closed sets that labels come from.
pub(super) fn labels(elections: &[ElectionName]) -> Labels {
    Labels {
        elections: elections.to_vec(),
        transitions: TransitionReason::ALL.iter().map(|reason| reason.as_str()).collect(),
        session_states: SessionState::ALL.iter().map(|state| state.as_str()).collect(),
        operations: OPERATIONS.to_vec(),
    }
}

/// What a fence may refuse, as tenures name it.
const OPERATIONS: &[&str] = &[
    "advance",
    "begin_work",
    "change_job",
    "charge",
    "execute",
    "finish_run",
    "give_up",
    "heard",
    "jobs",
    "lineage",
    "open_runs",
    "payout_jobs",
    "plan_page",
    "pulse",
    "put_back",
    "put_back_payouts",
    "receiver_way",
    "record_calls",
    "record_payouts",
    "record_ticks",
    "recover",
    "release",
    "requests",
    "settle",
    "take_calls",
    "take_payouts",
];

/// Observes for telemetry.
#[derive(Debug, Clone)]
pub(super) struct Observers(pub(super) Arc<Board>);

impl Observer for Observers {
    fn replicas(&self, replicas: Vec<ReplicaRecord>) {
        self.0.replicas(replicas);
    }

    fn transition(&self, _: &ElectionName, reason: TransitionReason) {
        self.0.metrics().transition(reason.as_str());
    }

    fn renewal(&self, took: Duration) {
        self.0.metrics().renewal_took(took);
    }

    fn lease_expired(&self) {
        self.0.metrics().lease_expired();
    }

    fn election_took(&self, _: &ElectionName, took: Duration) {
        self.0.metrics().election_took(took);
    }

    fn takeover_took(&self, _: &ElectionName, took: Duration) {
        self.0.metrics().takeover_took(took);
    }

    fn teardown_took(&self, _: &ElectionName, took: Duration) {
        self.0.metrics().teardown_took(took);
    }

    fn teardown_overran(&self, _: &ElectionName) {
        self.0.metrics().teardown_overran();
    }
}

impl TenureObserver for Observers {
    fn tick(&self, job: &JobName, outcome: &'static str) {
        self.0.metrics().ticks(job, outcome, 1);
    }

    fn tick_lag(&self, lag: Duration) {
        self.0.metrics().tick_lag(lag);
    }

    fn duplicate_runs_prevented(&self, count: u32) {
        self.0.metrics().duplicates_prevented(count.into());
    }

    fn batch(&self, took: Duration) {
        self.0.metrics().batch_took(took);
    }

    fn attempts(&self, outcome: AttemptOutcome, count: u64) {
        self.0.metrics().attempts(outcome, count);
    }

    fn payout_attempts(&self, outcome: &'static str, count: u64) {
        self.0.metrics().payout_attempt(outcome, count);
    }

    fn units_settled(&self, count: u64) {
        self.0.metrics().units_settled(count);
    }

    fn in_flight_units(&self, change: i64) {
        self.0.in_flight(change);
    }

    fn fencing_reject(&self, operation: &'static str) {
        self.0.metrics().fencing_reject(operation);
    }

    fn run_ended(&self, _: &JobName, _: RunState, took: Duration) {
        self.0.metrics().run_took(took);
    }

    fn store_time(&self, now: DateTime<Utc>) {
        self.0.store_time_read(now);
    }

    fn figures(&self, election: &ElectionName, figures: &StoreFigures) {
        self.0.figures(election, Some(figures.clone()));
    }

    fn figures_gone(&self, election: &ElectionName) {
        self.0.figures(election, None);
    }

    fn takes_spans(&self) -> bool {
        self.0.traces().is_some()
    }

    fn span(&self, span: &Span) {
        if let Some(traces) = self.0.traces() {
            traces.note(span);
        }
    }
}

//! Ticks become runs: what is due is decided by [`crate::schedule`] and recorded in one transaction with `evaluated_until`.
//!
//! Invariant: nothing here remembers a tick. A late, lost or doubled call finds in the store what is left to do.

use chrono::{DateTime, TimeDelta, Utc};

use super::scope::{Stop, Tenure};
use super::timers::{LEAD, Timers};
use crate::clock;
use crate::domain::run::RunKind;
use crate::schedule::{Outcome, Scan, ScanState, Schedule, TickDecision, decide};
use crate::store::{JobRow, TickFate, TickRecord, TicksOutcome, TicksRecord};

/// The pause before a job that could not be brought past a due tick is looked at again.
const AGAIN: TimeDelta = TimeDelta::milliseconds(250);
/// How far the store's clock may lie behind what was evaluated before that is an alert.
const STEPPED_BACK: TimeDelta = TimeDelta::seconds(5);

/// Pages of one job's ticks that are recorded in one go; the next sweep goes on after them.
const PAGES: u32 = 50;

/// What becomes of a tick, as it is recorded.
fn fate(outcome: &Outcome) -> TickFate {
    let why = || outcome.why().unwrap_or_default();
    match outcome {
        Outcome::Open { .. } => TickFate::Open { caught_up: false },
        Outcome::CatchUp { .. } => TickFate::Open { caught_up: true },
        Outcome::Coalesced { .. } => TickFate::Coalesced(why()),
        Outcome::Skipped(_) => TickFate::Skipped(why()),
        Outcome::Missed { .. } => TickFate::Missed(why()),
    }
}

fn record(decision: &TickDecision) -> TickRecord {
    TickRecord {
        tick: decision.tick.nominal,
        due_at: decision.tick.due_at,
        cutoff_at: decision.cutoff_at,
        value_date: decision.value_date,
        fate: fate(&decision.outcome),
    }
}

/// The decisions of a scan, as they are recorded.
pub(super) fn records(scan: &Scan) -> Vec<TickRecord> {
    scan.decisions.iter().map(record).collect()
}

/// Whether a run of the job that a tick opened has not ended.
pub(super) async fn has_open_tick_run(tenure: &Tenure, job: i64) -> Result<bool, Stop> {
    let runs = tenure.begin("open_runs", || tenure.store.open_runs()).await?;
    Ok(runs.iter().any(|run| run.job_id == job && run.kind == RunKind::Tick))
}

/// Evaluates every job that is due, arms the timers, and answers when the next tick is due at the store's clock.
///
/// # Errors
/// [`Stop`].
pub(super) async fn evaluate(tenure: &Tenure, timers: &Timers) -> Result<Option<DateTime<Utc>>, Stop> {
    let sent = clock::boottime();
    let view = tenure.begin("jobs", || tenure.store.jobs()).await?;
    tenure.clock.learn(sent, clock::boottime(), view.now);
    let mut next_due: Option<DateTime<Utc>> = None;
    for mut row in view.jobs {
        let schedule = match Schedule::new(&row.definition.timing) {
            Ok(schedule) => schedule,
            Err(error) => {
                tracing::error!(claim = %tenure.claim, job = %row.definition.name, %error, "the job's timing cannot be read");
                continue;
            }
        };
        if row.evaluated_until > view.now + STEPPED_BACK {
            tracing::error!(claim = %tenure.claim, job = %row.definition.name, until = %row.evaluated_until, now = %view.now,
                "the store's clock was stepped back: ticks go on once it has passed where it was");
        }
        let mut due_at = schedule.next_after(row.evaluated_until).map(|tick| tick.due_at);
        if due_at.is_some_and(|due_at| due_at <= view.now) {
            match evaluate_one(tenure, &schedule, &mut row, view.now).await {
                Ok(()) => {}
                Err(Stop::Failed(error)) => {
                    // The job stands still until it is mended; the others go on.
                    tracing::error!(claim = %tenure.claim, job = %row.definition.name, %error, "ticks could not be recorded");
                }
                Err(stop @ (Stop::Ending | Stop::Halted)) => return Err(stop),
            }
            due_at = schedule.next_after(row.evaluated_until).map(|tick| tick.due_at.max(view.now + AGAIN));
        }
        if let Some(due_at) = due_at {
            let wait = tenure.clock.until(due_at, clock::boottime());
            // Nearer than that, the sweep sleeps exactly to it.
            if wait > LEAD {
                timers.arm(&row.definition.name, due_at, wait);
            }
            next_due = Some(next_due.map_or(due_at, |next| next.min(due_at)));
        }
    }
    Ok(next_due)
}

/// Records what is due of one job and moves `row.evaluated_until` along.
async fn evaluate_one(tenure: &Tenure, schedule: &Schedule, row: &mut JobRow, now: DateTime<Utc>) -> Result<(), Stop> {
    let mut run_open = has_open_tick_run(tenure, row.id).await?;
    let mut misfired = false;
    for _ in 0..PAGES {
        let state =
            ScanState { evaluated_until: row.evaluated_until, now, paused: row.paused.clone(), run_open, misfired };
        let scan = decide(schedule, &state);
        let record = TicksRecord { job: row.clone(), evaluated_until: scan.evaluated_until, ticks: records(&scan) };
        crate::point!("tenure.tick.before_record");
        match tenure.begin("record_ticks", || tenure.store.record_ticks(record.clone())).await? {
            TicksOutcome::Recorded { opened, duplicates } => {
                recorded(tenure, row, &scan, &opened, duplicates);
                row.evaluated_until = scan.evaluated_until;
            }
            TicksOutcome::Moved => return Ok(()),
            TicksOutcome::NotYet { now } => {
                let moment = clock::boottime();
                tenure.clock.learn(moment, moment, now);
                return Ok(());
            }
        }
        if !scan.more {
            return Ok(());
        }
        run_open |= scan.opens();
        misfired = scan.misfired;
    }
    Ok(())
}

fn recorded(
    tenure: &Tenure,
    row: &JobRow,
    scan: &Scan,
    opened: &[(DateTime<Utc>, std::time::Duration)],
    duplicates: u32,
) {
    let (job, observer) = (&row.definition.name, &tenure.deps.observer);
    for decision in &scan.decisions {
        let label = decision.outcome.label();
        observer.tick(job, label);
        match &decision.outcome {
            Outcome::Open { .. } | Outcome::CatchUp { .. } | Outcome::Coalesced { .. } | Outcome::Skipped(_) => {
                tracing::info!(claim = %tenure.claim, %job, tick = %decision.tick.nominal, outcome = label, "tick");
            }
            Outcome::Missed { .. } => {
                tracing::error!(claim = %tenure.claim, %job, tick = %decision.tick.nominal, outcome = label, "tick");
            }
        }
    }
    for (_, lateness) in opened {
        observer.tick_lag(*lateness);
    }
    if duplicates > 0 {
        tracing::warn!(claim = %tenure.claim, %job, duplicates, "ticks had a run already");
        observer.duplicate_runs_prevented(duplicates);
    }
    tenure.work.notify_one();
}

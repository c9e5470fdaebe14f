//! Ticks become runs: what is due is decided by [`crate::schedule`] and recorded in one transaction with `evaluated_until`.
//!
//! Invariant: nothing here remembers a tick. A late, lost or doubled call finds in the store what is left to do.

use std::collections::BTreeSet;
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use futures_util::future::join_all;

use super::known::Known;
use super::pulse::STEPPED_BACK;
use super::scope::{Stop, Tenure};
use super::timers::{LEAD, Timers};
use crate::clock;
use crate::domain::job::Overlap;
use crate::domain::run::RunKind;
use crate::schedule::{Outcome, Scan, ScanState, Schedule, ScheduleError, TickDecision, decide};
use crate::store::{JobRow, JobsView, TickFate, TickRecord, TicksOutcome, TicksRecord};

/// The pause before a job that could not be brought past a due tick is looked at again.
const AGAIN: TimeDelta = TimeDelta::milliseconds(250);
/// Jobs that were read ahead are used no longer than that.
const STALE: TimeDelta = TimeDelta::seconds(2);
/// How far a reckoned time may lie ahead of the store's clock.
const RECKONED: TimeDelta = TimeDelta::milliseconds(100);

/// Jobs whose ticks are decided and recorded in one go.
const TOGETHER: usize = 1_000;
/// Not fewer of them make a transaction of their own, for a store that writes several at a time.
const APART: usize = 250;
/// A job with more ticks than that, after an absence, is recorded by itself.
const FEW: usize = 20;

/// Pages of one job's ticks that are recorded in one go; the next look goes on after them.
const PAGES: u32 = 10;

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

/// What a scan of a job starts from.
pub(super) fn scan_state(row: &JobRow, now: DateTime<Utc>, run_open: bool, misfired: bool) -> ScanState {
    ScanState {
        evaluated_until: row.evaluated_until,
        now,
        paused: row.paused.clone(),
        pauses: row.pauses.clone(),
        run_open,
        misfired,
        recorded: BTreeSet::new(),
    }
}

/// A job whose ticks are decided: its row's id, how, and what its scan starts from.
pub(super) struct Deciding<'a> {
    pub(super) job: i64,
    pub(super) how: Box<dyn Fn(&ScanState) -> Scan + Send + Sync + 'a>,
    pub(super) state: ScanState,
}

/// Decides for several jobs what is due of them. None is coalesced into a tick that has an outcome already: where it would be,
/// the store is asked, and what it knows counts.
pub(super) async fn decided(tenure: &Tenure, jobs: &mut [Deciding<'_>]) -> Result<Vec<Scan>, Stop> {
    let mut scans: Vec<Scan> = jobs.iter().map(|job| (job.how)(&job.state)).collect();
    let mut asked = BTreeSet::new();
    loop {
        let leant_on = jobs.iter().zip(&scans).flat_map(|(job, scan)| {
            let of = job.job;
            scan.leans_on().into_iter().map(move |tick| (of, tick))
        });
        let unknown: Vec<(i64, DateTime<Utc>)> = leant_on.filter(|tick| !asked.contains(tick)).collect();
        if unknown.is_empty() {
            return Ok(scans);
        }
        let recorded = tenure.begin("recorded", || tenure.store.recorded(&unknown)).await?;
        asked.extend(unknown);
        for (job, scan) in jobs.iter_mut().zip(&mut scans) {
            let before = job.state.recorded.len();
            job.state.recorded.extend(recorded.iter().filter(|(of, _)| *of == job.job).map(|(_, tick)| *tick));
            if job.state.recorded.len() > before {
                *scan = (job.how)(&job.state);
            }
        }
    }
}

/// Whether a run of the job that a tick opened has not ended, where that makes a difference.
pub(super) async fn has_open_tick_run(tenure: &Tenure, row: &JobRow) -> Result<bool, Stop> {
    Ok(open_tick_runs(tenure, std::iter::once(row)).await?.contains(&row.id))
}

/// Reads the jobs. Their answer is not what the store's clock is learnt from: with many jobs it takes its time, most of it after
/// that clock was read.
///
/// # Errors
/// [`Stop`].
pub(super) async fn read(tenure: &Tenure) -> Result<JobsView, Stop> {
    tenure.begin("jobs", || tenure.store.jobs()).await
}

/// Evaluates every job that is due, arms the timers, and answers when the next tick is due at the store's clock. `ahead`: the jobs
/// as they were read a moment ago; a job that has changed since is left for the next call.
///
/// # Errors
/// [`Stop`].
pub(super) async fn evaluate(
    tenure: &Tenure,
    timers: &Timers,
    known: &mut Known,
    ahead: Option<JobsView>,
) -> Result<Option<DateTime<Utc>>, Stop> {
    // Read so long ago they say nothing any more about lateness and pauses: the process may have stood still since.
    let ahead = ahead.filter(|view| tenure.clock.at(clock::boottime()).is_some_and(|now| now - view.now < STALE));
    let is_ahead = ahead.is_some();
    let mut view = match ahead {
        Some(view) => {
            let now = tenure.clock.at(clock::boottime()).unwrap_or(view.now).max(view.now);
            JobsView { now, ..view }
        }
        None => read(tenure).await?,
    };
    known.keep(&view.jobs);
    let mut due: Vec<(usize, Arc<Schedule>)> = Vec::new();
    let mut last_due: Option<DateTime<Utc>> = None;
    let farthest = view.jobs.iter().map(|row| row.evaluated_until).max();
    if let Some(until) = farthest.filter(|until| *until > view.now + STEPPED_BACK) {
        tracing::error!(claim = %tenure.claim, %until, now = %view.now,
            "the store's clock was stepped back: ticks go on once it has passed where it was");
    }
    for (place, row) in view.jobs.iter().enumerate() {
        match known.next_due(row) {
            Ok(Some(due_at)) if due_at <= view.now => match known.schedule(row) {
                Ok(schedule) => {
                    due.push((place, schedule));
                    last_due = last_due.max(Some(due_at));
                }
                Err(error) => unreadable(tenure, row, &error),
            },
            Ok(Some(_) | None) => {}
            Err(error) => unreadable(tenure, row, &error),
        }
    }
    if let Some(last_due) = last_due.filter(|_| is_ahead) {
        view.now = decided_at(view.now, last_due);
    }
    for together in due.chunks(TOGETHER) {
        evaluate_together(tenure, &mut view.jobs, together, view.now).await?;
    }
    let was_due: BTreeSet<usize> = due.iter().map(|(place, _)| *place).collect();
    let mut next_due: Option<DateTime<Utc>> = None;
    for (place, row) in view.jobs.iter().enumerate() {
        let Ok(Some(mut due_at)) = known.next_due(row) else { continue };
        if was_due.contains(&place) {
            due_at = due_at.max(view.now + AGAIN);
        }
        let wait = tenure.clock.until(due_at, clock::boottime());
        // Nearer than that, the sweep sleeps exactly to it.
        if wait > LEAD {
            timers.arm(&row.definition.name, due_at, wait);
        }
        next_due = Some(next_due.map_or(due_at, |next| next.min(due_at)));
    }
    Ok(next_due)
}

/// The time at which ticks are decided on where it was only reckoned: the store's own clock may lie a little behind it, and refuses
/// what it has not reached. The due time that was waited for is safe; of one long past the lateness counts.
fn decided_at(reckoned: DateTime<Utc>, last_due: DateTime<Utc>) -> DateTime<Utc> {
    last_due.max(reckoned - RECKONED)
}

fn unreadable(tenure: &Tenure, row: &JobRow, error: &ScheduleError) {
    tracing::error!(claim = %tenure.claim, job = %row.definition.name, %error, "the job's timing cannot be read");
}

/// Records what is due of several jobs in as few transactions as the store works on at a time, so that those of one instant are not
/// late for each other's sake. Where one fails, each of its jobs is recorded by itself: one job's trouble is not that of the others.
async fn evaluate_together(
    tenure: &Tenure,
    rows: &mut [JobRow],
    due: &[(usize, Arc<Schedule>)],
    now: DateTime<Utc>,
) -> Result<(), Stop> {
    let mut scans = Vec::with_capacity(due.len());
    let mut records = Vec::with_capacity(due.len());
    let mut long = Vec::new();
    let open = open_tick_runs(tenure, due.iter().map(|(place, _)| &rows[*place])).await?;
    let mut deciding: Vec<Deciding<'_>> = due
        .iter()
        .map(|(place, schedule)| {
            let row = &rows[*place];
            let state = scan_state(row, now, open.contains(&row.id), false);
            Deciding { job: row.id, how: Box::new(|state| decide(schedule, state)), state }
        })
        .collect();
    for ((place, schedule), scan) in due.iter().zip(decided(tenure, &mut deciding).await?) {
        let row = &rows[*place];
        if scan.decisions.len() > FEW {
            long.push((*place, schedule));
            continue;
        }
        let ticks = self::records(&scan);
        records.push(TicksRecord { job: row.clone(), evaluated_until: scan.evaluated_until, ticks });
        scans.push((*place, schedule, scan));
    }
    if !records.is_empty() {
        crate::point!("tenure.tick.before_record");
    }
    let part = records.len().div_ceil(tenure.store.writers()).max(APART);
    // Each to its end, also where another stops: none is given up while its COMMIT is under way. All else is done before or after,
    // since a transaction that waits for it keeps its locks.
    let recording = records.chunks(part).map(|part| tenure.begin("record_ticks", || tenure.store.record_many(part)));
    let outcomes = join_all(recording).await;
    let mut failed = Vec::new();
    let mut stopped = Ok(());
    for (scans, outcomes) in scans.chunks(part).zip(outcomes) {
        match outcomes {
            Ok(outcomes) => {
                for ((place, _, scan), outcome) in scans.iter().zip(outcomes) {
                    after_recording(tenure, &mut rows[*place], scan, outcome);
                }
            }
            Err(Stop::Failed(error)) => {
                let jobs = scans.len();
                tracing::warn!(claim = %tenure.claim, %error, jobs, "ticks could not be recorded together; now one by one");
                failed.extend(scans);
            }
            Err(stop @ (Stop::Ending | Stop::Halted)) => stopped = Err(stop),
        }
    }
    stopped?;
    for (place, schedule, _) in failed {
        alone(tenure, schedule, &mut rows[*place], now).await?;
    }
    // After those that are on time, and one at a look: what an absence left to do for one job makes no other late. One that gets
    // nowhere has had no turn.
    for (place, schedule) in long {
        let before = rows[place].evaluated_until;
        alone(tenure, schedule, &mut rows[place], now).await?;
        if rows[place].evaluated_until != before {
            break;
        }
    }
    Ok(())
}

/// What follows from how a job's ticks were recorded. Answers whether there can be more of them.
fn after_recording(tenure: &Tenure, row: &mut JobRow, scan: &Scan, outcome: TicksOutcome) -> bool {
    match outcome {
        TicksOutcome::Recorded { opened, duplicates } => {
            recorded(tenure, row, scan, &opened, duplicates);
            row.evaluated_until = scan.evaluated_until;
            scan.more
        }
        TicksOutcome::Moved => false,
        TicksOutcome::NotYet { now } => {
            let moment = clock::boottime();
            tenure.clock.learn(moment, moment, now);
            false
        }
    }
}

/// The jobs among these that have a run open which a tick opened, where that makes a difference: with `overlap = "skip"`.
async fn open_tick_runs<'a>(
    tenure: &Tenure,
    mut rows: impl Iterator<Item = &'a JobRow> + Send,
) -> Result<BTreeSet<i64>, Stop> {
    if rows.all(|row| row.definition.timing.overlap == Overlap::Queue) {
        return Ok(BTreeSet::new());
    }
    let runs = tenure.begin("open_runs", || tenure.store.open_runs()).await?;
    Ok(runs.iter().filter(|run| run.kind == RunKind::Tick).map(|run| run.job_id).collect())
}

/// Records what is due of one job; what fails by itself leaves it where it is until it is mended.
async fn alone(tenure: &Tenure, schedule: &Schedule, row: &mut JobRow, now: DateTime<Utc>) -> Result<(), Stop> {
    match evaluate_one(tenure, schedule, row, now).await {
        Err(Stop::Failed(error)) => {
            tracing::error!(claim = %tenure.claim, job = %row.definition.name, %error, "ticks could not be recorded");
            Ok(())
        }
        done @ (Ok(()) | Err(Stop::Ending | Stop::Halted)) => done,
    }
}

/// Records what is due of one job and moves `row.evaluated_until` along.
async fn evaluate_one(tenure: &Tenure, schedule: &Schedule, row: &mut JobRow, now: DateTime<Utc>) -> Result<(), Stop> {
    let mut run_open = has_open_tick_run(tenure, row).await?;
    let mut misfired = false;
    for _ in 0..PAGES {
        let state = scan_state(row, now, run_open, misfired);
        let how = Box::new(|state: &ScanState| decide(schedule, state));
        let Some(scan) = decided(tenure, &mut [Deciding { job: row.id, how, state }]).await?.pop() else {
            return Ok(());
        };
        let record = TicksRecord { job: row.clone(), evaluated_until: scan.evaluated_until, ticks: records(&scan) };
        crate::point!("tenure.tick.before_record");
        let outcome = tenure.begin("record_ticks", || tenure.store.record_ticks(record.clone())).await?;
        if !after_recording(tenure, row, &scan, outcome) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_read_ahead_is_decided_on_at_its_due_time_and_a_late_tick_as_late_as_it_is() {
        let due = DateTime::<Utc>::UNIX_EPOCH;
        for (since, decided) in [(0, 0), (3, 0), (100, 0), (101, 1), (7_200_000, 7_199_900)] {
            let [reckoned, decided] = [since, decided].map(|ms| due + TimeDelta::milliseconds(ms));
            assert_eq!(decided_at(reckoned, due), decided, "{since} ms after it");
        }
    }
}

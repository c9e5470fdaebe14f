//! Bringing the job rows up to the schedule, at promotion and after every edit.
//!
//! Before a changed definition counts, the old one is evaluated up to now; what the edit moves into the past is recorded as
//! skipped. So an edit never fires a tick that lies in the past. A new job starts at the store's now; a removed one is
//! evaluated once more and keeps its runs.
//!
//! A job whose election was edited is taken over by the leader of the new one, as it is, and then brought up like any other;
//! until then it stays where it is and goes on as it was, so that it is nobody's at no time. Where two leaders have different
//! schedules, the one that looked last has it; each looks again in a while.

use std::collections::BTreeMap;

use super::ScheduleInForce;
use super::planner;
use super::scope::{Stop, Tenure};
use crate::domain::job::JobDefinition;
use crate::domain::{ElectionName, JobName};
use crate::schedule::{Scan, ScanState, Schedule, decide, settle_edit};
use crate::store::{JobChange, JobChangeOutcome, JobRow, TakeOverOutcome, TicksOutcome, TicksRecord};

/// How often rows that change under our hands are read again; nobody but this leader and an operator's pause changes them.
const REREADS: u32 = 10;

/// Pages of the old definition's ticks that are recorded in one go. After a long absence there may be thousands: neither a
/// promotion nor other jobs wait for them.
const PAGES: u32 = 5;

/// What one job lacks.
#[derive(Debug, PartialEq)]
enum Difference {
    Add(Box<JobDefinition>),
    Change(Box<JobRow>, Box<JobDefinition>),
    Remove(Box<JobRow>),
}

/// What the rows lack of the schedule, in the order of names; nothing, where there is no schedule. Rows of jobs that belong to other elections by now are left to the
/// leaders of those.
fn differences(election: &ElectionName, rows: Vec<JobRow>, schedule: &ScheduleInForce) -> Vec<Difference> {
    let mut rows: BTreeMap<JobName, JobRow> = rows.into_iter().map(|row| (row.definition.name.clone(), row)).collect();
    let mut found = BTreeMap::new();
    for definition in schedule.jobs.iter().filter(|job| job.election == *election) {
        match rows.remove(&definition.name) {
            Some(row) if row.definition == *definition => {}
            Some(row) => {
                found.insert(definition.name.clone(), Difference::Change(Box::new(row), Box::new(definition.clone())));
            }
            None => {
                found.insert(definition.name.clone(), Difference::Add(Box::new(definition.clone())));
            }
        }
    }
    for definition in &schedule.jobs {
        rows.remove(&definition.name);
    }
    // A schedule file has at least one job: where there is none, there is no file, which is no way to take all jobs back.
    if schedule.jobs.is_empty() {
        rows.clear();
    }
    found.extend(rows.into_iter().map(|(name, row)| (name, Difference::Remove(Box::new(row)))));
    found.into_values().collect()
}

/// Brings the rows of the tenure's election up to the schedule. Answers whether that is complete; where it is not, some job
/// stays as it is for now, with the reason in the log, and the same call is to be made again later.
///
/// # Errors
/// [`Stop`]; what was brought up stays, and the same call goes on from there. [`Stop::Failed`] only where no row can be read.
pub(super) async fn bring_up(tenure: &Tenure, schedule: &ScheduleInForce) -> Result<bool, Stop> {
    let mut given_up: Vec<JobName> = Vec::new();
    for _ in 0..REREADS {
        let view = tenure.begin("jobs", || tenure.store.jobs()).await?;
        let mut left = differences(&tenure.claim.election, view.jobs, schedule);
        // A row that cannot be read is there all the same: its job is not new. The store has named it in the log.
        let is_unreadable = |name: &JobName| view.unreadable.iter().any(|unreadable| unreadable == name.as_str());
        let whole = !left.iter().any(|difference| is_unreadable(name_of(difference)));
        left.retain(|difference| !given_up.contains(name_of(difference)) && !is_unreadable(name_of(difference)));
        if left.is_empty() {
            return Ok(whole && given_up.is_empty());
        }
        for difference in left {
            let name = name_of(&difference).clone();
            match bring_up_one(tenure, view.now, difference).await {
                Ok(true) => {}
                Ok(false) => given_up.push(name),
                // One job's trouble is not that of the others.
                Err(Stop::Failed(error)) => {
                    tracing::error!(claim = %tenure.claim, job = %name, %error, "the job could not be brought up to the schedule");
                    given_up.push(name);
                }
                Err(stop @ (Stop::Ending | Stop::Halted)) => return Err(stop),
            }
        }
    }
    tracing::error!(claim = %tenure.claim, "the job rows kept changing; the sweep tries again");
    Ok(false)
}

fn name_of(difference: &Difference) -> &JobName {
    match difference {
        Difference::Add(definition) => &definition.name,
        Difference::Change(row, _) | Difference::Remove(row) => &row.definition.name,
    }
}

/// Answers whether it is worth reading the row again: false where the job stays as it is.
async fn bring_up_one(
    tenure: &Tenure,
    now: chrono::DateTime<chrono::Utc>,
    difference: Difference,
) -> Result<bool, Stop> {
    let name = name_of(&difference).clone();
    let (expected, definition) = match difference {
        Difference::Add(definition) => (None, Some(*definition)),
        Difference::Change(row, definition) => (Some(*row), Some(*definition)),
        Difference::Remove(row) => (Some(*row), None),
    };
    let change = match expected {
        None => JobChange { definition, name: name.clone(), expected: None, settled: Vec::new(), evaluated_until: now },
        Some(row) => match settle_old(tenure, now, row, definition.as_ref()).await? {
            Settled::Whole(row, scan) => JobChange {
                definition,
                name: name.clone(),
                expected: Some(*row),
                settled: planner::records(&scan),
                evaluated_until: scan.evaluated_until,
            },
            Settled::Moved => return Ok(true),
            Settled::ForNow => return Ok(false),
        },
    };
    let settled = change.settled.clone();
    match tenure.begin("change_job", || tenure.store.change_job(change.clone())).await? {
        JobChangeOutcome::Changed(row) => {
            for record in &settled {
                tenure.deps.observer.tick(&name, record.fate.as_str());
            }
            tenure.work.notify_one();
            tracing::info!(claim = %tenure.claim, job = %name, in_force = row.is_some(), "the job was brought up to the schedule");
            Ok(true)
        }
        JobChangeOutcome::Moved => Ok(true),
        // The definition in force stays, for which nothing is due before that time either.
        JobChangeOutcome::NotYet { now } => {
            tracing::warn!(claim = %tenure.claim, job = %name, %now, reaches = ?change.reaches(),
                "the store's clock was stepped back: the edit of the job waits until the clock has passed what it settles");
            Ok(false)
        }
        JobChangeOutcome::OtherElection(other) => take_over(tenure, &name, &other).await,
    }
}

/// Takes a job over from another election; what else its definition lacks of the schedule is found at the next look. Answers
/// whether it is worth reading the row again.
async fn take_over(tenure: &Tenure, job: &JobName, from: &str) -> Result<bool, Stop> {
    let claim = &tenure.claim;
    let Ok(from) = ElectionName::new(from) else {
        tracing::error!(%claim, %job, from, "the job belongs to an election with a name that is none, and stays there");
        return Ok(false);
    };
    match tenure.begin("take_over_job", || tenure.store.take_over_job(job, &from)).await? {
        TakeOverOutcome::Taken(_) => {
            tracing::warn!(%claim, %job, %from, "the job was taken over from another election");
            crate::point!("tenure.take_over.after");
            tenure.work.notify_one();
            Ok(true)
        }
        TakeOverOutcome::NotThere => Ok(true),
        TakeOverOutcome::Halted(halt) => {
            tracing::error!(%claim, %job, %from, since = %halt.since, "the job is not taken over from an election that is halted");
            Ok(false)
        }
    }
}

/// How far an old definition was evaluated.
enum Settled {
    /// Up to now, with the last page, which belongs to the change.
    Whole(Box<JobRow>, Scan),
    /// The row is another by now.
    Moved,
    /// Some pages of it, which are recorded: the next look goes on after them.
    ForNow,
}

/// Evaluates the old definition up to now, or as far as it goes in one go. All but the last page are recorded here.
async fn settle_old(
    tenure: &Tenure,
    now: chrono::DateTime<chrono::Utc>,
    mut row: JobRow,
    new: Option<&JobDefinition>,
) -> Result<Settled, Stop> {
    let old = Schedule::new(&row.definition.timing);
    let new = new.map(|definition| Schedule::new(&definition.timing)).transpose();
    let (old, new) = match (old, new) {
        (Ok(old), Ok(new)) => (old, new),
        // Definitions are checked before they come here; one of a release that read cron otherwise has no ticks to settle.
        (old, new) => {
            let why = old.err().or(new.err()).map(|error| error.to_string());
            tracing::error!(claim = %tenure.claim, job = %row.definition.name, why, "a definition cannot be read");
            let scan = Scan {
                decisions: Vec::new(),
                evaluated_until: now.max(row.evaluated_until),
                more: false,
                misfired: false,
            };
            return Ok(Settled::Whole(Box::new(row), scan));
        }
    };
    let mut misfired = false;
    let mut pages = 0;
    loop {
        let run_open = planner::has_open_tick_run(tenure, &row).await?;
        let state = planner::scan_state(&row, now, run_open, misfired);
        let how = Box::new(|state: &ScanState| match &new {
            Some(new) => settle_edit(&old, new, state),
            None => decide(&old, state),
        });
        let deciding = planner::Deciding { job: row.id, how, state };
        let Some(scan) = planner::decided(tenure, &mut [deciding]).await?.pop() else { return Ok(Settled::Moved) };
        if !scan.more {
            return Ok(Settled::Whole(Box::new(row), scan));
        }
        if pages == PAGES {
            tracing::warn!(claim = %tenure.claim, job = %row.definition.name, until = %row.evaluated_until,
                "the job's old definition has more ticks to settle; it stays in force until they are");
            return Ok(Settled::ForNow);
        }
        pages += 1;
        let record =
            TicksRecord { job: row.clone(), evaluated_until: scan.evaluated_until, ticks: planner::records(&scan) };
        match tenure.begin("record_ticks", || tenure.store.record_ticks(record.clone())).await? {
            TicksOutcome::Recorded { .. } => {
                misfired = scan.misfired;
                row.evaluated_until = scan.evaluated_until;
            }
            TicksOutcome::Moved | TicksOutcome::NotYet { .. } => return Ok(Settled::Moved),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::Duration;

    use super::*;
    use crate::domain::job::{
        BatchDefinition, CatchUpOrder, CutoffRule, FoldRule, GapRule, HandlerDefinition, Misfire, Overlap,
        ProbeDefinition, RetryDefinition, Timing,
    };

    pub(in crate::tenure) fn definition(name: &str, election: &str, cron: &str) -> JobDefinition {
        JobDefinition {
            name: JobName::new(name).expect("valid"),
            election: ElectionName::new(election).expect("valid"),
            timing: Timing {
                cron: cron.to_owned(),
                timezone: chrono_tz::UTC,
                gap: GapRule::Shift,
                fold: FoldRule::First,
                misfire: Misfire::RunLatest,
                misfire_grace: Duration::from_mins(1),
                catch_up_window: Duration::from_hours(48),
                catch_up_max: 1,
                catch_up_order: CatchUpOrder::Oldest,
                overlap: Overlap::Queue,
                cutoff: CutoffRule::Before(Duration::ZERO),
                business_days: None,
                run_deadline: None,
            },
            handler: HandlerDefinition::Probe(ProbeDefinition::default()),
            batch: BatchDefinition { size: 10, concurrency: 1 },
            retry: RetryDefinition {
                max_attempts: 3,
                backoff_min: Duration::from_millis(10),
                backoff_max: Duration::from_millis(50),
            },
        }
    }

    fn row(id: i64, definition: JobDefinition) -> JobRow {
        let fingerprint = definition.fingerprint();
        let evaluated_until = chrono::DateTime::from_timestamp(1_800_000_000, 0).expect("in range");
        JobRow { id, definition, fingerprint, evaluated_until, paused: None, pauses: Vec::new() }
    }

    #[test]
    fn jobs_are_added_changed_and_removed_and_those_of_other_elections_left() {
        let moves = |election| definition("moves", election, "0 1 * * *");
        let here = ElectionName::new("here").expect("valid");
        let same = definition("same", "here", "0 1 * * *");
        let (old, new) = (definition("edited", "here", "0 1 * * *"), definition("edited", "here", "0 2 * * *"));
        let added = definition("added", "here", "0 1 * * *");
        let gone = row(3, definition("gone", "here", "0 1 * * *"));
        let schedule = ScheduleInForce {
            jobs: vec![
                same.clone(),
                new.clone(),
                added.clone(),
                definition("other", "there", "0 1 * * *"),
                moves("there"),
            ],
            fingerprint: String::new(),
        };
        let rows = vec![row(1, same), row(2, old.clone()), gone.clone(), row(4, moves("here"))];
        let found = differences(&here, rows, &schedule);
        assert_eq!(
            found,
            [
                Difference::Add(Box::new(added)),
                Difference::Change(Box::new(row(2, old)), Box::new(new)),
                Difference::Remove(Box::new(gone.clone()))
            ]
        );
        let none = ScheduleInForce { jobs: Vec::new(), fingerprint: String::new() };
        assert_eq!(differences(&here, vec![gone], &none), [], "a file that is missing takes no job back");
    }
}

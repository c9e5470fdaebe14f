//! Operators' requests that only a leader may execute: a manual run, the retry of units set aside. What to make of each is
//! decided purely; the store executes it once, however often it is handed over.
//!
//! Invariants:
//! - They are served in a task of their own, one after the other: the retry of a run with very many units takes its time, and no
//!   tick waits for it.
//! - One is executed on a connection of those that batches use, never on the one that the sweep needs.

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::{DateTime, SubsecRound, Utc};

use super::scope::{Stop, Tenure};
use crate::clock;
use crate::domain::{JobName, Moment};
use crate::schedule::{Schedule, Tick, backfilled};
use crate::store::{Execution, JobRow, JobsView, PendingRequest, RequestKind, RequestState, TickFate, TickRecord};

/// Names shown to whoever asked for a job that is not there.
const NAMES_SHOWN: usize = 20;
/// Requests that follow one another are decided on jobs that were read no longer ago than that.
const FRESH: Duration = Duration::from_secs(1);
/// The wait before what could not be executed is tried again.
const AGAIN: Duration = Duration::from_secs(1);

/// Serves requests until the tenure stops, whenever the sweep has seen that some wait.
pub(super) async fn requests(tenure: Tenure) {
    loop {
        tokio::select! {
            biased;
            () = tenure.stopping.cancelled() => return,
            () = tenure.requests.notified() => {}
        }
        let failed = match serve(&tenure).await {
            Ok(all) => !all,
            Err(Stop::Ending) => return,
            // The sweep wakes us once it is over.
            Err(Stop::Halted) => false,
            Err(Stop::Failed(error)) => {
                tracing::error!(claim = %tenure.claim, %error, "the requests could not be read");
                true
            }
        };
        if failed && tenure.sleep(AGAIN).await.is_err() {
            return;
        }
    }
}

/// Serves the requests that wait, oldest first. Answers whether all of them could be executed.
///
/// # Errors
/// [`Stop`]; those not served wait on.
async fn serve(tenure: &Tenure) -> Result<bool, Stop> {
    let pending = tenure.begin("requests", || tenure.store.requests()).await?;
    let mut view: Option<(Moment, JobsView)> = None;
    let mut all = true;
    for request in pending {
        let read = match view.take() {
            Some(read) if clock::boottime().since(read.0) < FRESH => read,
            Some(_) | None => (clock::boottime(), super::planner::read(tenure).await?),
        };
        let execution = decide(&request, &view.insert(read).1);
        let state = match execute(tenure, &request, &execution).await {
            Ok(state) => state,
            Err(Stop::Failed(error)) => {
                // It waits on, with the error in the log; the others are served.
                tracing::error!(claim = %tenure.claim, request = %request.id, %error, "a request could not be executed");
                all = false;
                continue;
            }
            Err(stop @ (Stop::Ending | Stop::Halted)) => return Err(stop),
        };
        match state {
            RequestState::Done { run, units } => {
                tracing::info!(claim = %tenure.claim, request = %request.id, run, units_retried = units, "a request was executed");
                tenure.work.notify_one();
            }
            RequestState::Opened { runs } => {
                tracing::info!(claim = %tenure.claim, request = %request.id, runs = runs.len(), "a request was executed");
                tenure.work.notify_one();
            }
            RequestState::Refused { why } => {
                tracing::warn!(claim = %tenure.claim, request = %request.id, why, "a request was refused");
            }
            RequestState::Waiting => {
                tracing::warn!(claim = %tenure.claim, request = %request.id, "a request waits on");
            }
        }
    }
    Ok(all)
}

async fn execute(tenure: &Tenure, request: &PendingRequest, execution: &Execution) -> Result<RequestState, Stop> {
    let _permit = tenure.permit().await?;
    tenure.begin("execute", || tenure.store.execute(request.id, execution.clone())).await
}

/// What to make of a request.
fn decide(request: &PendingRequest, view: &JobsView) -> Execution {
    match &request.kind {
        RequestKind::Trigger { job, tick, cutoff } => match row_of(job, view) {
            Ok(row) => trigger(row, view.now, *tick, *cutoff),
            Err(why) => Execution::Refuse(why),
        },
        RequestKind::Backfill { job, from, to } => match row_of(job, view) {
            Ok(row) => backfill(row, view.now, *from, *to),
            Err(why) => Execution::Refuse(why),
        },
        RequestKind::RetryUnits { run, keys } => Execution::Retry { run: *run, keys: keys.clone() },
    }
}

/// The row of a job, or why there is none.
fn row_of<'a>(job: &JobName, view: &'a JobsView) -> Result<&'a JobRow, String> {
    if let Some(row) = view.jobs.iter().find(|row| row.definition.name == *job) {
        return Ok(row);
    }
    let known: BTreeSet<_> = view.jobs.iter().map(|row| row.definition.name.as_str()).collect();
    let known = known.into_iter().take(NAMES_SHOWN).collect::<Vec<_>>().join(", ");
    Err(format!("there is no job {job} in this election; there are: {known}"))
}

/// A manual run for each tick that fell due in the span, also where the schedule has run it already: that is what is asked
/// for. Ticks on days off that are skipped have none.
fn backfill(row: &JobRow, now: DateTime<Utc>, from: DateTime<Utc>, to: DateTime<Utc>) -> Execution {
    match Schedule::new(&row.definition.timing) {
        Ok(schedule) => match backfilled(&schedule, now, from, to) {
            Ok(ticks) => {
                let record = |tick: &Tick| TickRecord {
                    tick: tick.nominal,
                    due_at: tick.due_at,
                    cutoff_at: schedule.cutoff_at(tick.due_at),
                    value_date: schedule.value_date(tick.due_at),
                    fate: TickFate::Open { caught_up: false },
                };
                Execution::OpenMany { job: Box::new(row.clone()), ticks: ticks.iter().map(record).collect() }
            }
            Err(why) => Execution::Refuse(format!("{}: {why}", row.definition.name)),
        },
        Err(error) => Execution::Refuse(format!("the job's timing cannot be read: {error}")),
    }
}

fn trigger(row: &JobRow, now: DateTime<Utc>, tick: Option<DateTime<Utc>>, cutoff: Option<DateTime<Utc>>) -> Execution {
    // Ticks are whole seconds, as keys write them.
    let tick = tick.unwrap_or(now).trunc_subsecs(0);
    let cutoff_at = cutoff.unwrap_or(now);
    if tick > now {
        return Execution::Refuse(format!("the tick {tick} lies after the store's time {now}"));
    }
    if cutoff_at > now {
        return Execution::Refuse(format!("the cutoff {cutoff_at} lies after the store's time {now}"));
    }
    match Schedule::new(&row.definition.timing) {
        Ok(schedule) => {
            let value_date = schedule.value_date(tick);
            let fate = TickFate::Open { caught_up: false };
            let tick = TickRecord { tick, due_at: tick, cutoff_at, value_date, fate };
            Execution::Open { job: Box::new(row.clone()), tick }
        }
        Err(error) => Execution::Refuse(format!("the job's timing cannot be read: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::bringup::tests::definition;
    use super::*;

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_800_000_000 + second, 500_000_000).expect("in range")
    }

    fn asked(kind: RequestKind) -> Execution {
        let row = JobRow {
            id: 1,
            definition: definition("daily", "here", "0 1 * * *"),
            fingerprint: String::new(),
            evaluated_until: at(0),
            paused: None,
            pauses: Vec::new(),
        };
        let view = JobsView { now: at(0), jobs: vec![row], unreadable: Vec::new() };
        decide(&PendingRequest { id: uuid::Uuid::nil(), kind, at: at(0) }, &view)
    }

    fn trigger(job: &str, tick: Option<DateTime<Utc>>, cutoff: Option<DateTime<Utc>>) -> Execution {
        asked(RequestKind::Trigger { job: JobName::new(job).expect("valid"), tick, cutoff })
    }

    #[test]
    fn a_trigger_without_times_takes_the_stores_now() {
        let Execution::Open { tick, .. } = trigger("daily", None, None) else { panic!("refused") };
        assert_eq!((tick.tick, tick.cutoff_at), (at(0).trunc_subsecs(0), at(0)));
        assert_eq!(tick.due_at, tick.tick);
    }

    fn backfill(job: &str, from: i64, to: i64) -> Execution {
        let at = |second| at(0).trunc_subsecs(0) + chrono::TimeDelta::seconds(second);
        asked(RequestKind::Backfill { job: JobName::new(job).expect("valid"), from: at(from), to: at(to) })
    }

    #[test]
    fn a_backfill_has_each_tick_of_its_span_with_its_own_times() {
        let Execution::OpenMany { ticks, .. } = backfill("daily", -3 * 86_400, 0) else { panic!("refused") };
        assert_eq!(ticks.len(), 3);
        assert!(ticks.is_sorted_by_key(|tick| tick.due_at) && ticks.iter().all(|tick| tick.cutoff_at == tick.due_at));
        for (from, to, says) in
            [(0, -1, "after"), (-10, 1, "future"), (-10, -5, "no tick"), (-600 * 86_400, 0, "at most")]
        {
            let refused = backfill("daily", from, to);
            assert!(matches!(&refused, Execution::Refuse(why) if why.contains(says)), "{refused:?}");
        }
        assert!(matches!(backfill("nightly", -10, 0), Execution::Refuse(why) if why.contains("daily")));
    }

    #[test]
    fn what_lies_in_the_future_or_is_not_there_is_refused_with_what_is_allowed() {
        assert!(matches!(trigger("daily", Some(at(1)), None), Execution::Refuse(why) if why.contains("tick")));
        assert!(matches!(trigger("daily", None, Some(at(1))), Execution::Refuse(why) if why.contains("cutoff")));
        assert!(matches!(trigger("nightly", None, None), Execution::Refuse(why) if why.contains("daily")));
    }
}

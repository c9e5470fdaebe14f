//! Executing a request: once, under the file's write lock; later calls answer what the first one made of it.

use std::time::Duration;

use sqlx::sqlite::{SqliteConnection, SqliteQueryResult};
use uuid::Uuid;

use super::columns::{count, date_text, id_text, json_text, micros};
use super::error::at;
use super::requests::state_of;
use super::tx::Done;
use crate::domain::Claim;
use crate::domain::run::RunState;
use crate::store::records::why_not_retried_yet;
use crate::store::{Execution, JobRow, RequestState, StoreError, TickRecord};

const OPERATION: &str = "execute";

/// Executes one request.
pub(super) async fn execute(
    connection: &mut SqliteConnection,
    claim: &Claim,
    request: Uuid,
    execution: &Execution,
) -> Result<Done<RequestState>, StoreError> {
    let row = sqlx::query(include_str!("sql/request_find.sql"))
        .bind(id_text(request))
        .bind(claim.election.as_str())
        .fetch_optional(&mut *connection)
        .await
        .map_err(at(OPERATION))?;
    let Some(row) = row else {
        return Err(StoreError::Broken {
            operation: OPERATION,
            detail: format!("there is no request {request} in election {}", claim.election),
        });
    };
    match state_of(&row).map_err(at(OPERATION))? {
        RequestState::Waiting => {}
        already @ (RequestState::Done { .. } | RequestState::Opened { .. } | RequestState::Refused { .. }) => {
            return Ok(Done::RollBack(already));
        }
    }
    let made = match execution {
        Execution::Open { job, tick } => open(connection, claim, request, job, tick).await?,
        Execution::OpenMany { job, ticks } => open_many(connection, claim, request, job, ticks).await?,
        Execution::Retry { run, keys } => {
            let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
            retry(connection, claim, *run, &keys).await?
        }
        Execution::Refuse(why) => RequestState::Refused { why: why.clone() },
    };
    let state = match made {
        RequestState::Waiting => "waiting",
        RequestState::Done { .. } | RequestState::Opened { .. } => "done",
        RequestState::Refused { .. } => "refused",
    };
    let done = sqlx::query(include_str!("sql/request_done.sql"))
        .bind(id_text(request))
        .bind(state)
        .bind(json_text(&made).map_err(at(OPERATION))?)
        .bind(claim.term.get())
        .execute(connection)
        .await
        .map_err(at(OPERATION))?;
    one_row(&done, || format!("request {request} was no longer waiting"))?;
    Ok(Done::Commit(made))
}

/// Rolls everything back where a row was not as it was read.
fn one_row(done: &SqliteQueryResult, otherwise: impl FnOnce() -> String) -> Result<(), StoreError> {
    match done.rows_affected() {
        1 => Ok(()),
        _ => Err(StoreError::Broken { operation: OPERATION, detail: otherwise() }),
    }
}

/// Opens a manual run; nobody else writes, so there is none of this request yet.
async fn open(
    connection: &mut SqliteConnection,
    claim: &Claim,
    request: Uuid,
    job: &JobRow,
    tick: &TickRecord,
) -> Result<RequestState, StoreError> {
    let run: Option<i64> = sqlx::query_scalar(include_str!("sql/run_open_manual.sql"))
        .bind(job.id)
        .bind(claim.election.as_str())
        .bind(job.fingerprint.as_str())
        .bind(claim.term.get())
        .bind(id_text(request))
        .bind(job.definition.timing.run_deadline.map(micros_of))
        .bind(micros(tick.tick))
        .bind(micros(tick.due_at))
        .bind(micros(tick.cutoff_at))
        .bind(date_text(tick.value_date))
        .fetch_optional(connection)
        .await
        .map_err(at(OPERATION))?;
    Ok(match run {
        Some(run) => RequestState::Done { run, units: 0 },
        None => RequestState::Refused {
            why: format!(
                "job {} was changed or removed meanwhile, or the cutoff {} lies in the future; ask again",
                job.definition.name, tick.cutoff_at
            ),
        },
    })
}

/// A deadline as whole microseconds.
fn micros_of(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

/// Opens a manual run for each tick, or none. Nobody else writes meanwhile, so that the job is the same for all.
async fn open_many(
    connection: &mut SqliteConnection,
    claim: &Claim,
    request: Uuid,
    job: &JobRow,
    ticks: &[TickRecord],
) -> Result<RequestState, StoreError> {
    // The latest cutoff first: where it has come, so have the others, and the job is as it was read for all of them.
    let mut order: Vec<&TickRecord> = ticks.iter().collect();
    order.sort_by_key(|tick| std::cmp::Reverse((tick.cutoff_at, tick.tick)));
    let mut runs = std::collections::BTreeMap::new();
    for tick in order {
        match open(&mut *connection, claim, request, job, tick).await? {
            RequestState::Done { run, .. } => drop(runs.insert((tick.due_at, tick.tick), run)),
            refused if runs.is_empty() => return Ok(refused),
            refused => {
                let detail = format!("job {} changed under its lock: {refused:?}", job.definition.name);
                return Err(StoreError::Broken { operation: OPERATION, detail });
            }
        }
    }
    Ok(RequestState::Opened { runs: runs.into_values().collect() })
}

/// Sets units back to pending and reopens their run: instructions first, while their units can be told by their state.
async fn retry(
    connection: &mut SqliteConnection,
    claim: &Claim,
    run: i64,
    keys: &[&str],
) -> Result<RequestState, StoreError> {
    let refused = |why: String| Ok(RequestState::Refused { why });
    let found: Option<(String, bool, Option<String>)> = sqlx::query_as(include_str!("sql/run_for_retry.sql"))
        .bind(run)
        .bind(claim.election.as_str())
        .fetch_optional(&mut *connection)
        .await
        .map_err(at(OPERATION))?;
    let Some((state, was_planning, why)) = found else {
        return refused(format!("run {run} does not belong to election {}", claim.election));
    };
    match RunState::parse(&state) {
        Some(RunState::Open) if why.is_some() => return refused(why_not_retried_yet(run)),
        Some(RunState::Open | RunState::CompleteSetAside) => {}
        Some(RunState::Planning | RunState::Complete | RunState::Skipped | RunState::Coalesced | RunState::Missed)
        | None => return refused(format!("run {run} is {state}: it has no unit that is set aside")),
    }
    let (retried, in_doubt) = set_back(connection, run, keys).await.map_err(at(OPERATION))?;
    if retried == 0 && !(was_planning && keys.is_empty()) {
        return refused(format!(
            "no unit of run {run} with these keys is set aside and may be tried again ({in_doubt} have an instruction \
             whose outcome is unknown, which a person must find out first)"
        ));
    }
    let reopened =
        sqlx::query(include_str!("sql/run_reopen.sql")).bind(run).execute(connection).await.map_err(at(OPERATION))?;
    one_row(&reopened, || format!("run {run} could not be reopened: it is no longer {state}"))?;
    Ok(RequestState::Done { run, units: retried })
}

/// Sets units back; answers how many, and how many stay for a person.
async fn set_back(connection: &mut SqliteConnection, run: i64, keys: &[&str]) -> Result<(u64, u64), sqlx::Error> {
    let keys = json_text(keys)?;
    let row =
        sqlx::query(include_str!("sql/units_in_doubt.sql")).bind(run).bind(&keys).fetch_one(&mut *connection).await?;
    let in_doubt = count(&row, "in_doubt")?;
    sqlx::query(include_str!("sql/units_retry_calls.sql")).bind(run).bind(&keys).execute(&mut *connection).await?;
    let retried = sqlx::query(include_str!("sql/units_retry.sql")).bind(run).bind(&keys).execute(connection).await?;
    Ok((retried.rows_affected(), in_doubt))
}

//! What `status` shows: elections, jobs, open runs and the last ended ones, replicas that are cordoned.

use sqlx::Row;
use sqlx::sqlite::{SqliteConnection, SqliteRow};

use super::columns::{
    count, election_name, job_name, json, maybe_holder, maybe_id, maybe_time, run_state, time, unreadable,
};
use super::error::at;
use super::runs::{Only, rows, summary};
use super::tx::halt_of;
use crate::domain::run::RunState;
use crate::store::{Cordon, ElectionStatus, Fence, JobStatus, RunFilter, RunSummary, StatusView, StoreError};

/// The most open runs that are shown.
const OPEN_RUNS: u32 = 1000;

/// The most runs that ended which are shown.
const ENDED_RUNS: u32 = 20;

/// Elections, jobs, open runs.
pub(super) async fn status(connection: &mut SqliteConnection) -> Result<StatusView, StoreError> {
    read(connection).await.map_err(at("status"))
}

async fn read(connection: &mut SqliteConnection) -> Result<StatusView, sqlx::Error> {
    let head = sqlx::query(include_str!("sql/status_head.sql")).fetch_one(&mut *connection).await?;
    let elections = sqlx::query(include_str!("sql/status_elections.sql")).fetch_all(&mut *connection).await?;
    let jobs = sqlx::query(include_str!("sql/status_jobs.sql")).fetch_all(&mut *connection).await?;
    let cordons = sqlx::query(include_str!("sql/status_cordons.sql")).fetch_all(&mut *connection).await?;
    Ok(StatusView {
        now: time(&head, "now")?,
        deployment_id: maybe_id(&head, "deployment_id")?,
        elections: elections.iter().map(election).collect::<Result<_, _>>()?,
        jobs: jobs.iter().map(job).collect::<Result<_, _>>()?,
        runs: runs(connection).await?,
        cordons: cordons.iter().map(cordon).collect::<Result<_, _>>()?,
        fencing_rejects: count(&head, "rejects")?,
    })
}

/// Open runs, then the newest that are not.
async fn runs(connection: &mut SqliteConnection) -> Result<Vec<RunSummary>, sqlx::Error> {
    let filter = RunFilter { limit: OPEN_RUNS, ..RunFilter::default() };
    let open = rows(connection, &filter, Only::Open).await?;
    let filter = RunFilter { limit: ENDED_RUNS + OPEN_RUNS.min(u32::try_from(open.len()).unwrap_or(0)), ..filter };
    let newest = rows(connection, &filter, Only::Any).await?;
    let mut shown = open.iter().map(summary).collect::<Result<Vec<_>, _>>()?;
    let ended = newest.iter().map(summary).collect::<Result<Vec<_>, _>>()?;
    let ended = ended.into_iter().filter(|run| !run.state.is_open());
    shown.extend(ended.take(usize::try_from(ENDED_RUNS).unwrap_or(0)));
    Ok(shown)
}

fn election(row: &SqliteRow) -> Result<ElectionStatus, sqlx::Error> {
    let holder = maybe_holder(row, "term", "tenure_id")?
        .ok_or_else(|| unreadable("term", "nothing", "a term and its tenure", "the fence's row is not whole"))?;
    Ok(ElectionStatus {
        election: election_name(row, "election")?,
        fence: Fence { holder, halt: halt_of(row)? },
        leader: row.try_get("replica")?,
        accepted_at: maybe_time(row, "accepted_at")?,
        ended: row.try_get("end_reason")?,
    })
}

fn job(row: &SqliteRow) -> Result<JobStatus, sqlx::Error> {
    let definition: serde_json::Value = json(row, "definition")?;
    let last: Option<&str> = row.try_get("last_state")?;
    let last_state: Option<RunState> = last.map(|_| run_state(row, "last_state")).transpose()?;
    Ok(JobStatus {
        job: job_name(row, "name")?,
        election: election_name(row, "election")?,
        // A handler is written as its name with its definition.
        handler: handler_name(&definition),
        fingerprint: row.try_get("fingerprint")?,
        evaluated_until: time(row, "evaluated_until")?,
        last_tick: maybe_time(row, "last_tick")?,
        last_state,
        paused: row.try_get("paused")?,
        definition,
    })
}

fn cordon(row: &SqliteRow) -> Result<Cordon, sqlx::Error> {
    Ok(Cordon {
        replica: row.try_get("replica")?,
        at: time(row, "at")?,
        by: row.try_get("by")?,
        reason: row.try_get("reason")?,
    })
}

/// The handler's name in a stored definition, also one of a release that knows more handlers.
fn handler_name(definition: &serde_json::Value) -> String {
    let handler = definition.get("handler");
    let name =
        handler.and_then(|handler| handler.as_object().and_then(|object| object.keys().next()).map(String::as_str));
    name.or_else(|| handler.and_then(serde_json::Value::as_str)).unwrap_or("unknown").to_owned()
}

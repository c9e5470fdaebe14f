//! Runs that still have work, and the note of who works on them.

use sqlx::Row;
use sqlx::postgres::{PgConnection, PgRow};

use super::error::at;
use super::tx::Done;
use crate::domain::Claim;
use crate::domain::run::{RunKind, RunState};
use crate::store::bounds::OPEN_RUNS;
use crate::store::readable::{Said, readable};
use crate::store::{OpenRun, Pulse, StoreError};

/// The store's time and what waits.
pub(super) async fn pulse(connection: &mut PgConnection, claim: &Claim) -> Result<Done<Pulse>, StoreError> {
    let operation = "pulse";
    let row = sqlx::query(include_str!("sql/pulse.sql"))
        .bind(claim.election.as_str())
        .fetch_one(connection)
        .await
        .map_err(at(operation))?;
    let requests: i64 = row.try_get("requests").map_err(at(operation))?;
    let open_runs: i64 = row.try_get("open_runs").map_err(at(operation))?;
    let jobs: i64 = row.try_get("jobs").map_err(at(operation))?;
    Ok(Done::RollBack(Pulse {
        now: row.try_get("now").map_err(at(operation))?,
        requests: u64::try_from(requests).unwrap_or(0),
        open_runs: u64::try_from(open_runs).unwrap_or(0),
        jobs: u64::try_from(jobs).unwrap_or(0),
    }))
}

/// Runs that are planning or open, oldest due first; of a job with many those that come next.
pub(super) async fn open_runs(
    connection: &mut PgConnection,
    claim: &Claim,
    said: &Said,
) -> Result<Done<Vec<OpenRun>>, StoreError> {
    let operation = "open_runs";
    let rows = sqlx::query(include_str!("sql/open_runs.sql"))
        .bind(claim.election.as_str())
        .bind(i64::from(OPEN_RUNS))
        .fetch_all(connection)
        .await
        .map_err(at(operation))?;
    Ok(Done::RollBack(readable(&rows, run_of, said, "run", |row| row.try_get("name").ok()).0))
}

fn run_of(row: &PgRow) -> Result<OpenRun, sqlx::Error> {
    let strange = |what: &str| sqlx::Error::Decode(format!("an unknown {what} of a run").into());
    let definition: sqlx::types::Json<_> = row.try_get("definition")?;
    Ok(OpenRun {
        id: row.try_get("id")?,
        job_id: row.try_get("job_id")?,
        definition: definition.0,
        kind: RunKind::parse(row.try_get("kind")?).ok_or_else(|| strange("kind"))?,
        request_id: row.try_get("request_id")?,
        tick: row.try_get("tick")?,
        due_at: row.try_get("due_at")?,
        cutoff_at: row.try_get("cutoff_at")?,
        value_date: row.try_get("value_date")?,
        state: RunState::parse(row.try_get("state")?).ok_or_else(|| strange("state"))?,
        caught_up: row.try_get("caught_up")?,
        opened_at: row.try_get("opened_at")?,
        elsewhere: row.try_get("elsewhere")?,
        given_up: row.try_get("why")?,
    })
}

/// Notes that this term works on a run; a second note of the same term keeps the first one's time.
pub(super) async fn begin_work(connection: &mut PgConnection, claim: &Claim, run: i64) -> Result<Done<()>, StoreError> {
    sqlx::query(include_str!("sql/begin_work.sql"))
        .bind(claim.election.as_str())
        .bind(claim.term.get())
        .bind(run)
        .execute(connection)
        .await
        .map_err(at("begin_work"))?;
    Ok(Done::Commit(()))
}

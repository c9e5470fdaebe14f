//! Runs that still have work, and the note of who works on them.

use sqlx::Row;
use sqlx::sqlite::{SqliteConnection, SqliteRow};

use super::columns::{count, date, json, maybe_id, run_kind, run_state, time};
use super::error::at;
use super::tx::Done;
use crate::domain::Claim;
use crate::store::bounds::OPEN_RUNS;
use crate::store::readable::{Said, readable};
use crate::store::{OpenRun, Pulse, StoreError};

/// The store's time and what waits.
pub(super) async fn pulse(connection: &mut SqliteConnection, claim: &Claim) -> Result<Done<Pulse>, StoreError> {
    let operation = "pulse";
    let row = sqlx::query(include_str!("sql/pulse.sql"))
        .bind(claim.election.as_str())
        .fetch_one(connection)
        .await
        .map_err(at(operation))?;
    Ok(Done::RollBack(Pulse {
        now: time(&row, "now").map_err(at(operation))?,
        requests: count(&row, "requests").map_err(at(operation))?,
        open_runs: count(&row, "open_runs").map_err(at(operation))?,
        jobs: count(&row, "jobs").map_err(at(operation))?,
    }))
}

/// Runs that are planning or open, oldest due first; of a job with many those that come next.
pub(super) async fn open_runs(
    connection: &mut SqliteConnection,
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

fn run_of(row: &SqliteRow) -> Result<OpenRun, sqlx::Error> {
    Ok(OpenRun {
        id: row.try_get("id")?,
        job_id: row.try_get("job_id")?,
        definition: json(row, "definition")?,
        kind: run_kind(row, "kind")?,
        request_id: maybe_id(row, "request_id")?,
        tick: time(row, "tick")?,
        due_at: time(row, "due_at")?,
        cutoff_at: time(row, "cutoff_at")?,
        value_date: date(row, "value_date")?,
        state: run_state(row, "state")?,
        caught_up: row.try_get("caught_up")?,
        opened_at: time(row, "opened_at")?,
        elsewhere: row.try_get("elsewhere")?,
        given_up: row.try_get("why")?,
    })
}

/// Notes that this term works on a run; a second note of the same term keeps the first one's time.
pub(super) async fn begin_work(
    connection: &mut SqliteConnection,
    claim: &Claim,
    run: i64,
) -> Result<Done<()>, StoreError> {
    sqlx::query(include_str!("sql/begin_work.sql"))
        .bind(claim.election.as_str())
        .bind(claim.term.get())
        .bind(run)
        .execute(connection)
        .await
        .map_err(at("begin_work"))?;
    Ok(Done::Commit(()))
}

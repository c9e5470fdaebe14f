//! Figures of one election that only the store knows; read by its leader every few seconds, so they stay in small indexes.

use sqlx::Row;
use sqlx::sqlite::SqliteConnection;

use super::columns::{count, instruction_state, job_name, run_state};
use super::error::at;
use crate::domain::unit::UnitState;
use crate::domain::{ElectionName, JobName};
use crate::store::{StoreError, StoreFigures};

/// Figures of one election.
pub(super) async fn figures(
    connection: &mut SqliteConnection,
    election: &ElectionName,
) -> Result<StoreFigures, StoreError> {
    read(connection, election).await.map_err(at("figures"))
}

async fn read(connection: &mut SqliteConnection, election: &ElectionName) -> Result<StoreFigures, sqlx::Error> {
    let mut figures = StoreFigures::default();
    let rows =
        sqlx::query(include_str!("sql/figures_runs.sql")).bind(election.as_str()).fetch_all(&mut *connection).await?;
    for row in &rows {
        let job = job_name(row, "job")?;
        figures.runs.push((job.clone(), run_state(row, "state")?, count(row, "runs")?));
        for state in UnitState::ALL {
            add(&mut figures.units, &job, state, count(row, state.as_str())?);
        }
        figures.runs_overdue += count(row, "overdue")?;
        figures.oldest_pending_seconds = figures.oldest_pending_seconds.max(count(row, "oldest_seconds")?);
    }
    let rows = sqlx::query(include_str!("sql/figures_instructions.sql"))
        .bind(election.as_str())
        .fetch_all(&mut *connection)
        .await?;
    for row in &rows {
        figures.payouts.push((instruction_state(row, "state")?, count(row, "instructions")?));
        figures.oldest_payout_seconds = figures.oldest_payout_seconds.max(count(row, "oldest_seconds")?);
    }
    let fence =
        sqlx::query(include_str!("sql/figures_fence.sql")).bind(election.as_str()).fetch_one(connection).await?;
    figures.fencing_rejects = count(&fence, "rejects")?;
    figures.receivers_stopped = (count(&fence, "stopped")?, count(&fence, "needs_resume")?);
    figures.ticks_held_back_seconds = count(&fence, "held_back")?;
    figures.halted = fence.try_get("halted")?;
    Ok(figures)
}

/// Adds to the units of a job in a state: a job may have runs that are planning beside open ones.
fn add(units: &mut Vec<(JobName, UnitState, u64)>, job: &JobName, state: UnitState, more: u64) {
    match units.iter_mut().find(|(name, found, _)| name == job && *found == state) {
        Some((_, _, sum)) => *sum += more,
        None => units.push((job.clone(), state, more)),
    }
}

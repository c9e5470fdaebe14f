//! What a promotion finds of the terms before it, and what a planned end leaves.
//!
//! What a lower term held is known to be dead: nobody waits for a time-out here. Safe to repeat: what was counted or turned
//! is no longer as it is looked for.

use sqlx::Row;
use sqlx::sqlite::SqliteConnection;

use super::columns::{json_text, small_count};
use super::error::at;
use super::tries;
use super::tx::Done;
use crate::domain::Claim;
use crate::store::records::why_given_up_for_deaths;
use crate::store::{DEATHS_BEFORE_SET_ASIDE, Recovery, StoreError};

const OPERATION: &str = "recover";

/// Turns what lower terms left `sending`, counts their deaths, and gives up the runs that killed too many.
pub(super) async fn recover(connection: &mut SqliteConnection, claim: &Claim) -> Result<Done<Recovery>, StoreError> {
    // Units first: which of them wait for a person is read from their instructions as they were left.
    sqlx::query(include_str!("sql/recover_units.sql"))
        .bind(claim.election.as_str())
        .bind(claim.term.get())
        .execute(&mut *connection)
        .await
        .map_err(at(OPERATION))?;
    let left = sqlx::query(include_str!("sql/recover_sending.sql"))
        .bind(claim.election.as_str())
        .bind(claim.term.get())
        .fetch_all(&mut *connection)
        .await
        .map_err(at(OPERATION))?;
    tries::lost(connection, &left).await.map_err(at(OPERATION))?;
    let runs = sqlx::query(include_str!("sql/recover_runs.sql"))
        .bind(claim.election.as_str())
        .bind(claim.term.get())
        .fetch_all(&mut *connection)
        .await
        .map_err(at(OPERATION))?;
    let mut doomed = Vec::new();
    for row in &runs {
        if small_count(row, "deaths").map_err(at(OPERATION))? >= DEATHS_BEFORE_SET_ASIDE {
            doomed.push(row.try_get::<i64, _>("id").map_err(at(OPERATION))?);
        }
    }
    doomed.sort_unstable();
    if !doomed.is_empty() {
        give_up(connection, &doomed).await?;
    }
    Ok(Done::Commit(Recovery {
        calls_unknown: left.len() as u64,
        runs_set_aside: doomed,
        runs_taken_over: u64::try_from(runs.len()).unwrap_or(u64::MAX),
    }))
}

/// One row a run, however many units it has: those are set aside in pages, while the tenure is at work.
async fn give_up(connection: &mut SqliteConnection, runs: &[i64]) -> Result<(), StoreError> {
    sqlx::query(include_str!("sql/recover_give_up.sql"))
        .bind(json_text(runs).map_err(at(OPERATION))?)
        .bind(why_given_up_for_deaths())
        .execute(connection)
        .await
        .map(|_| ())
        .map_err(at(OPERATION))
}

/// A planned end: no run counts this tenure as a death.
pub(super) async fn release(connection: &mut SqliteConnection, claim: &Claim) -> Result<Done<()>, StoreError> {
    sqlx::query(include_str!("sql/release.sql"))
        .bind(claim.election.as_str())
        .bind(claim.term.get())
        .execute(connection)
        .await
        .map_err(at("release"))?;
    Ok(Done::Commit(()))
}

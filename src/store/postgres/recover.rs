//! What a promotion finds of the terms before it, and what a planned end leaves.
//!
//! What a lower term held is known to be dead: nobody waits for a time-out here. Safe to repeat: what was counted or turned
//! is no longer as it is looked for.

use sqlx::Row;
use sqlx::postgres::PgConnection;

use super::error::at;
use super::tx::Done;
use crate::domain::Claim;
use crate::store::records::why_given_up_for_deaths;
use crate::store::{DEATHS_BEFORE_SET_ASIDE, Recovery, StoreError};

const OPERATION: &str = "recover";

/// Turns what lower terms left `sending`, counts their deaths, and gives up the runs that killed too many.
pub(super) async fn recover(connection: &mut PgConnection, claim: &Claim) -> Result<Done<Recovery>, StoreError> {
    // Units before instructions, by id: the order of locks.
    sqlx::query(include_str!("sql/recover_lock_units.sql"))
        .bind(claim.election.as_str())
        .bind(claim.term.get())
        .execute(&mut *connection)
        .await
        .map_err(at(OPERATION))?;
    let calls: i64 = sqlx::query_scalar(crate::sql!("sql/recover_sending.sql"))
        .bind(claim.election.as_str())
        .bind(claim.term.get())
        .fetch_one(&mut *connection)
        .await
        .map_err(at(OPERATION))?;
    let runs = sqlx::query(include_str!("sql/recover_runs.sql"))
        .bind(claim.election.as_str())
        .bind(claim.term.get())
        .fetch_all(&mut *connection)
        .await
        .map_err(at(OPERATION))?;
    let mut doomed = Vec::new();
    for row in &runs {
        let deaths: i32 = row.try_get("deaths").map_err(at(OPERATION))?;
        if u32::try_from(deaths).unwrap_or(0) >= DEATHS_BEFORE_SET_ASIDE
            && !crate::mutant!("recovery.run-never-set-aside")
        {
            doomed.push(row.try_get::<i64, _>("id").map_err(at(OPERATION))?);
        }
    }
    if !doomed.is_empty() {
        give_up(connection, &doomed).await?;
    }
    Ok(Done::Commit(Recovery {
        calls_unknown: u64::try_from(calls).unwrap_or(0),
        runs_set_aside: doomed,
        runs_taken_over: u64::try_from(runs.len()).unwrap_or(u64::MAX),
    }))
}

/// One row a run, however many units it has: those are set aside in pages, while the tenure is at work.
async fn give_up(connection: &mut PgConnection, runs: &[i64]) -> Result<(), StoreError> {
    sqlx::query(include_str!("sql/recover_give_up.sql"))
        .bind(runs)
        .bind(why_given_up_for_deaths())
        .execute(connection)
        .await
        .map(|_| ())
        .map_err(at(OPERATION))
}

/// A planned end: no run counts this tenure as a death.
pub(super) async fn release(connection: &mut PgConnection, claim: &Claim) -> Result<Done<()>, StoreError> {
    sqlx::query(include_str!("sql/release.sql"))
        .bind(claim.election.as_str())
        .bind(claim.term.get())
        .execute(connection)
        .await
        .map_err(at("release"))?;
    Ok(Done::Commit(()))
}

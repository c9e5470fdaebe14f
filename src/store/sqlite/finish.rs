//! The end of a run: found, not declared. It ends when none of its units is pending.

use std::time::Duration;

use sqlx::Row;
use sqlx::sqlite::SqliteConnection;

use super::error::at;
use super::plan::run_state;
use super::tx::Done;
use crate::domain::Claim;
use crate::domain::run::RunState;
use crate::store::{FinishOutcome, StoreError};

const OPERATION: &str = "finish_run";

/// Ends the run, or says what is pending, in an open transaction that has entered the fence.
///
/// # Errors
/// Any [`StoreError`]; the caller rolls back.
pub(super) async fn finish_run(
    conn: &mut SqliteConnection,
    claim: &Claim,
    run: i64,
) -> Result<Done<FinishOutcome>, StoreError> {
    let found: Option<String> = sqlx::query_scalar(include_str!("sql/plan_state.sql"))
        .bind(run)
        .bind(claim.election.as_str())
        .fetch_optional(&mut *conn)
        .await
        .map_err(at(OPERATION))?;
    let state = run_state(OPERATION, run, claim, found.as_deref())?;
    if state != RunState::Open {
        return Ok(Done::RollBack(FinishOutcome::NotOpen(state)));
    }
    let pending = sqlx::query(include_str!("sql/finish_pending.sql"))
        .bind(run)
        .bind(claim.election.as_str())
        .fetch_one(&mut *conn)
        .await
        .map_err(at(OPERATION))?;
    let units: i64 = pending.try_get("units").map_err(at(OPERATION))?;
    if units > 0 {
        let fresh: i64 = pending.try_get("fresh").map_err(at(OPERATION))?;
        let next: Option<i64> = pending.try_get("next_in_ms").map_err(at(OPERATION))?;
        return Ok(Done::RollBack(FinishOutcome::Pending {
            units: units.unsigned_abs(),
            fresh: fresh.unsigned_abs(),
            // A wait that is over already is none.
            next_in: next.map(|ms| Duration::from_millis(u64::try_from(ms).unwrap_or(0))),
        }));
    }
    let ended: Option<String> = sqlx::query_scalar(include_str!("sql/finish_end.sql"))
        .bind(run)
        .bind(claim.election.as_str())
        .fetch_optional(&mut *conn)
        .await
        .map_err(at(OPERATION))?;
    crate::point!("store.finish.before_commit");
    Ok(Done::Commit(FinishOutcome::Finished(run_state(OPERATION, run, claim, ended.as_deref())?)))
}

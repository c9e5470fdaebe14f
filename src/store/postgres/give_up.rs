//! A run that is given up, page by page: one that killed too many leaders, whose units are set aside, and one that cannot be
//! planned, whose units are withdrawn. It may have millions of them, more than one statement has time for.
//!
//! Invariants:
//! - Nothing of such a run is claimed. It stays planning or open, with why, until none of its units is pending, so that whoever
//!   leads finds it and goes on.
//! - A page may be done again, and in any order.

use sqlx::Row;
use sqlx::postgres::PgConnection;

use super::error::at;
use super::plan::run_state;
use super::tx::Done;
use crate::domain::Claim;
use crate::domain::run::RunState;
use crate::store::{DEATHS_BEFORE_SET_ASIDE, GiveUpOutcome, StoreError};

const OPERATION: &str = "give_up";

/// Does one page in an open transaction that has entered the fence.
///
/// # Errors
/// Any [`StoreError`]; the caller rolls back.
pub(super) async fn give_up(
    conn: &mut PgConnection,
    claim: &Claim,
    run: i64,
    after: i64,
    limit: u32,
) -> Result<Done<GiveUpOutcome>, StoreError> {
    let found: Option<(String, Option<String>, bool)> = sqlx::query_as(include_str!("sql/give_up_run.sql"))
        .bind(run)
        .bind(claim.election.as_str())
        .bind(i64::from(DEATHS_BEFORE_SET_ASIDE))
        .fetch_optional(&mut *conn)
        .await
        .map_err(at(OPERATION))?;
    let state = run_state(OPERATION, run, claim, found.as_ref().map(|(state, ..)| state.as_str()))?;
    let (why, deadly) = found.map_or((None, false), |(_, why, deadly)| (why, deadly));
    let Some(why) = why.filter(|_| state.is_open()) else {
        return Ok(Done::RollBack(GiveUpOutcome::NotGivenUp(state)));
    };
    let limit = i64::from(limit.max(1));
    let page = if deadly {
        sqlx::query(include_str!("sql/give_up_set_aside.sql"))
            .bind(run)
            .bind(claim.election.as_str())
            .bind(after)
            .bind(limit)
            .bind(why)
            .bind(claim.term.get())
    } else {
        sqlx::query(include_str!("sql/give_up_withdraw.sql"))
            .bind(run)
            .bind(claim.election.as_str())
            .bind(after)
            .bind(limit)
    };
    let page = page.fetch_one(&mut *conn).await.map_err(at(OPERATION))?;
    let units: i64 = page.try_get("units").map_err(at(OPERATION))?;
    let last: Option<i64> = page.try_get("last").map_err(at(OPERATION))?;
    if let Some(after) = last.filter(|_| units >= limit) {
        return Ok(Done::Commit(GiveUpOutcome::Going { after }));
    }
    let ended = sqlx::query(include_str!("sql/give_up_end.sql"))
        .bind(run)
        .bind(claim.election.as_str())
        .execute(conn)
        .await
        .map_err(at(OPERATION))?;
    Ok(Done::Commit(match ended.rows_affected() {
        1 => GiveUpOutcome::Ended(RunState::CompleteSetAside),
        // Something is pending below the cursor: from the beginning.
        _ => GiveUpOutcome::Going { after: 0 },
    }))
}

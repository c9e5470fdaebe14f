//! Taking an import back: what is open is withdrawn, what is settled gets its opposite. Nothing is deleted or edited.
//!
//! Invariants: it belongs to no election, so it holds every gate shared for its moment; entries are locked in the order of
//! ids and looked at after that, so that each is either withdrawn or answered by an adjustment, never both and never neither.

use chrono::{DateTime, Utc};
use sqlx::postgres::PgConnection;

use super::acts::{self, Act};
use super::approvals::{self, Eyes};
use super::columns::count;
use super::error::at;
use super::tx::Done;
use crate::store::{Actor, GuardedAct, RevertOutcome, StoreError};

const OPERATION: &str = "revert_import";

/// Takes an import back in an open transaction.
///
/// # Errors
/// Any fault of the store; the caller rolls back.
pub(super) async fn revert_import(
    connection: &mut PgConnection,
    import: i64,
    reason: &str,
    actor: &Actor,
    eyes: Eyes,
) -> Result<Done<RevertOutcome>, StoreError> {
    if let Err(outcome) = lock(&mut *connection, import).await? {
        return Ok(Done::RollBack(outcome));
    }
    if eyes == Eyes::One && approvals::are_on(&mut *connection, OPERATION).await? {
        let Ok(found) = approvals::look_at_import(&mut *connection, import).await? else {
            return Ok(Done::RollBack(RevertOutcome::NotFound));
        };
        let asks = GuardedAct::RevertImport { import };
        let request = approvals::file(connection, OPERATION, &asks, &found, reason, actor).await?;
        return Ok(Done::Commit(RevertOutcome::Waits { request }));
    }
    take_back(connection, import, reason, actor).await
}

/// Locks an import and what is to be taken back of it, under every gate; or says why there is nothing.
pub(super) async fn lock(connection: &mut PgConnection, import: i64) -> Result<Result<(), RevertOutcome>, StoreError> {
    sqlx::query(include_str!("sql/revert_gates.sql")).execute(&mut *connection).await.map_err(at(OPERATION))?;
    let found: Option<Option<DateTime<Utc>>> = sqlx::query_scalar(include_str!("sql/revert_lock.sql"))
        .bind(import)
        .fetch_optional(&mut *connection)
        .await
        .map_err(at(OPERATION))?;
    match found {
        None => return Ok(Err(RevertOutcome::NotFound)),
        Some(Some(at)) => return Ok(Err(RevertOutcome::Already { at })),
        Some(None) => {}
    }
    sqlx::query(include_str!("sql/revert_lock_entries.sql"))
        .bind(import)
        .execute(&mut *connection)
        .await
        .map_err(at(OPERATION))?;
    Ok(Ok(()))
}

/// Takes a locked import back.
async fn take_back(
    connection: &mut PgConnection,
    import: i64,
    reason: &str,
    actor: &Actor,
) -> Result<Done<RevertOutcome>, StoreError> {
    let row = sqlx::query(include_str!("sql/revert_entries.sql"))
        .bind(import)
        .fetch_one(&mut *connection)
        .await
        .map_err(at(OPERATION))?;
    let number = |column: &str| count(&row, column).map_err(at(OPERATION));
    let (taken, withdrawn, marked, adjusted) =
        (number("taken")?, number("withdrawn")?, number("marked")?, number("adjusted")?);
    if taken != withdrawn + marked || marked != adjusted {
        return Err(StoreError::Broken {
            operation: OPERATION,
            detail: format!(
                "{taken} entries were to be taken back, {withdrawn} were withdrawn, {marked} marked, {adjusted} adjusted: \
                 nothing is taken back"
            ),
        });
    }
    let target = import.to_string();
    let act = Act {
        action: "imports revert",
        target: &target,
        reason: Some(reason),
        election: None,
        term: None,
        details: Some(serde_json::json!({ "withdrawn": withdrawn, "adjusted": adjusted })),
    };
    let act = acts::write(connection, OPERATION, actor, act).await?;
    let ended = sqlx::query(include_str!("sql/revert_end.sql"))
        .bind(import)
        .bind(reason)
        .bind(act)
        .execute(connection)
        .await
        .map_err(at(OPERATION))?;
    if ended.rows_affected() != 1 {
        return Err(StoreError::Broken { operation: OPERATION, detail: format!("import {import} was not marked") });
    }
    crate::point!("store.revert.before_commit");
    Ok(Done::Commit(RevertOutcome::Reverted { withdrawn, adjusted }))
}

//! Taking an import back: what is open is withdrawn, what is settled gets its opposite. Nothing is deleted or edited.
//!
//! Invariants: the file's write lock is held, so nobody settles, advances or halts meanwhile; each entry is either withdrawn
//! or answered by an adjustment, never both and never neither: counted, and rolled back where it does not come out.

use sqlx::sqlite::SqliteConnection;

use super::acts::{self, Act};
use super::columns::{count, maybe_time};
use super::error::at;
use super::tx::Done;
use crate::store::{Actor, RevertOutcome, StoreError};

const OPERATION: &str = "revert_import";

/// Takes an import back in an open transaction.
///
/// # Errors
/// Any fault of the store; the caller rolls back.
pub(super) async fn revert_import(
    connection: &mut SqliteConnection,
    import: i64,
    reason: &str,
    actor: &Actor,
) -> Result<Done<RevertOutcome>, StoreError> {
    let found = sqlx::query(include_str!("sql/revert_find.sql"))
        .bind(import)
        .fetch_optional(&mut *connection)
        .await
        .map_err(at(OPERATION))?;
    let Some(found) = found else { return Ok(Done::RollBack(RevertOutcome::NotFound)) };
    if let Some(at) = maybe_time(&found, "reverted_at").map_err(at(OPERATION))? {
        return Ok(Done::RollBack(RevertOutcome::Already { at }));
    }
    let Counted { all: taken, withdrawn, marked, adjusted } = take(connection, import).await.map_err(at(OPERATION))?;
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

/// What was done to the entries of an import.
struct Counted {
    all: u64,
    withdrawn: u64,
    marked: u64,
    adjusted: u64,
}

/// Opposites first: they are written from what is not marked yet.
async fn take(connection: &mut SqliteConnection, import: i64) -> Result<Counted, sqlx::Error> {
    let row = sqlx::query(include_str!("sql/revert_taken.sql")).bind(import).fetch_one(&mut *connection).await?;
    let all = count(&row, "taken")?;
    let opposite = sqlx::query(include_str!("sql/revert_opposite.sql")).bind(import).execute(&mut *connection).await?;
    let marked = sqlx::query(include_str!("sql/revert_mark.sql")).bind(import).execute(&mut *connection).await?;
    let withdrawn = sqlx::query(include_str!("sql/revert_withdraw.sql")).bind(import).execute(connection).await?;
    Ok(Counted {
        all,
        withdrawn: withdrawn.rows_affected(),
        marked: marked.rows_affected(),
        adjusted: opposite.rows_affected(),
    })
}

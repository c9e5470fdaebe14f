//! The effect of the handler `sql` on one batch: the user's statement, once, over `bursar_batch`; then the units' states, in
//! the same transaction.
//!
//! Invariants:
//! - The statement is put behind `PREPARE`, as one message of the extended protocol: so it is one statement, and one that
//!   reads or writes rows. It can neither commit nor roll back; the transaction's id is compared all the same.
//! - What it does wrong is a verdict on the batch, which is halved until the unit at fault stands alone. It is never final at
//!   the first time: what it reads may be another at the next.
//!
//! Deliberately absent: other rights than those of bursar's role, and a look at what the statement answers.

use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Row};

use super::error::{at, fault};
use super::settle::{Claimed, OPERATION, Setback, record};
use super::settle_ledger::LedgerRows;
use crate::domain::Claim;
use crate::domain::outside::SqlDefinition;
use crate::store::{BatchCounts, BatchError, OpenRun, StoreError};

/// Settles units that are claimed.
///
/// # Errors
/// [`Setback`]; the caller rolls back.
pub(super) async fn settle(
    conn: &mut PgConnection,
    claim: &Claim,
    run: &OpenRun,
    definition: &SqlDefinition,
    units: &[Claimed],
) -> Result<BatchCounts, Setback> {
    let before = prepare(conn, definition, units).await?;
    user(sqlx::query("execute bursar_settle").persistent(false).execute(&mut *conn).await)?;
    crate::point!("store.settle.after_users_statement", failed => failure(&failed));
    let after: String = sqlx::query(include_str!("sql/batch_after.sql"))
        .fetch_one(&mut *conn)
        .await
        .and_then(|row| row.try_get("xact"))
        .map_err(own)?;
    if after != before {
        return Err(Setback::Fault(StoreError::Broken {
            operation: OPERATION,
            detail:
                "the job's statement ended the transaction that it was in; expected one that only reads and writes rows"
                    .to_owned(),
        }));
    }
    sqlx::raw_sql("deallocate bursar_settle").execute(&mut *conn).await.map_err(own)?;
    record(conn, claim, run, &LedgerRows::marked(units)).await
}

/// Makes view and statement. Answers the transaction's id.
async fn prepare(conn: &mut PgConnection, definition: &SqlDefinition, units: &[Claimed]) -> Result<String, Setback> {
    let ids: Vec<i64> = units.iter().map(|unit| unit.id).collect();
    let row = sqlx::query(include_str!("sql/batch_session.sql")).bind(ids).fetch_one(&mut *conn).await.map_err(own)?;
    let has = |what: &str| row.try_get::<bool, _>(what).map_err(own);
    if !has("has_view")? {
        sqlx::raw_sql(include_str!("sql/batch_view.sql")).execute(&mut *conn).await.map_err(own)?;
    }
    if has("has_statement")? {
        sqlx::raw_sql("deallocate bursar_settle").execute(&mut *conn).await.map_err(own)?;
    }
    let prepared = sqlx::query(AssertSqlSafe(prepared(&definition.settle)));
    user(prepared.persistent(false).execute(conn).await)?;
    row.try_get("xact").map_err(own)
}

/// The user's statement behind `PREPARE`.
pub(super) fn prepared(settle: &str) -> String {
    let statement = settle.trim_end().trim_end_matches(';');
    format!("prepare bursar_settle as\n{statement}")
}

/// An error of a statement of ours is no verdict.
fn own(error: sqlx::Error) -> Setback {
    Setback::Fault(at(OPERATION)(error))
}

/// An error of the user's statement is one, unless the store is at fault.
fn user<T>(answer: Result<T, sqlx::Error>) -> Result<(), Setback> {
    let Err(error) = answer else { return Ok(()) };
    Err(match fault(OPERATION, &error).of_a_users_statement() {
        Ok(words) => {
            Setback::Verdict(BatchError { message: format!("the job's statement failed: {words}"), permanent: false })
        }
        Err(error) => Setback::Fault(error),
    })
}

#[cfg(feature = "chaos")]
fn failure(failed: &crate::chaos::Failed) -> Setback {
    Setback::Fault(StoreError::TryAgain { operation: OPERATION, code: "40001".to_owned(), detail: failed.to_string() })
}

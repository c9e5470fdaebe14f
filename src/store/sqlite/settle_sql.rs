//! The effect of the handler `sql` on one batch: the user's statement, once, over `bursar_batch`; then the units' states, in
//! the same transaction.
//!
//! Invariants:
//! - The statement is one, and one that reads or writes rows ([`one_statement`]): it can neither commit nor roll back. A
//!   savepoint around it, which every COMMIT and ROLLBACK would take away, is asked for afterwards all the same.
//! - What it does wrong is a verdict on the batch, which is halved until the unit at fault stands alone. It is never final at
//!   the first time: what it reads may be another at the next.
//!
//! Deliberately absent: a look at what the statement answers.

use sqlx::AssertSqlSafe;
use sqlx::sqlite::SqliteConnection;

use super::columns::json_text;
use super::error::{at, fault};
use super::one_statement::{WRITES, one_statement};
use super::settle::{Claimed, OPERATION, Setback, record};
use super::settle_ledger::LedgerRows;
use crate::domain::Claim;
use crate::domain::outside::SqlDefinition;
use crate::store::{BatchCounts, BatchError, OpenRun};

/// Settles units that are claimed.
///
/// # Errors
/// [`Setback`]; the caller rolls back.
pub(super) async fn settle(
    conn: &mut SqliteConnection,
    claim: &Claim,
    run: &OpenRun,
    definition: &SqlDefinition,
    units: &[Claimed],
) -> Result<BatchCounts, Setback> {
    let statement = one_statement(&definition.settle, &WRITES).map_err(|why| verdict(&why))?;
    let ids: Vec<i64> = units.iter().map(|unit| unit.id).collect();
    sqlx::raw_sql(include_str!("sql/batch_table.sql")).execute(&mut *conn).await.map_err(own)?;
    let ids = json_text(&ids).map_err(own)?;
    sqlx::query(include_str!("sql/batch_fill.sql")).bind(ids).execute(&mut *conn).await.map_err(own)?;
    sqlx::raw_sql("savepoint bursar_settle").execute(&mut *conn).await.map_err(own)?;
    let settled = sqlx::query(AssertSqlSafe(statement.to_owned())).persistent(false).execute(&mut *conn).await;
    if let Err(error) = settled {
        return Err(match fault(OPERATION, &error).of_a_users_statement() {
            Ok(words) => verdict(&words),
            Err(error) => Setback::Fault(error),
        });
    }
    crate::point!("store.settle.after_users_statement", failed => failure(&failed));
    sqlx::raw_sql("release bursar_settle").execute(&mut *conn).await.map_err(own)?;
    record(conn, claim, run, &LedgerRows::marked(units)).await
}

fn verdict(words: &str) -> Setback {
    Setback::Verdict(BatchError { message: format!("the job's statement failed: {words}"), permanent: false })
}

/// An error of a statement of ours is no verdict.
fn own(error: sqlx::Error) -> Setback {
    Setback::Fault(at(OPERATION)(error))
}

#[cfg(feature = "chaos")]
fn failure(failed: &crate::chaos::Failed) -> Setback {
    Setback::Fault(crate::store::StoreError::TryAgain {
        operation: OPERATION,
        code: "40001".to_owned(),
        detail: failed.to_string(),
    })
}

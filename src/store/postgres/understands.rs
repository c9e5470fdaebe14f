//! Whether the database understands a user's statement: it is prepared as its handler has it, in a transaction that is rolled
//! back, and never run.

use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Executor, SqlSafeStr};

use super::error::{at, fault};
use super::{plan_query, settle_sql};
use crate::store::{StoreError, UsersStatement};

const OPERATION: &str = "understands";

/// What is wrong with a statement; `None`: nothing.
pub(super) async fn understands(
    connection: &mut PgConnection,
    statement: UsersStatement<'_>,
) -> Result<Option<String>, StoreError> {
    let text = match statement {
        UsersStatement::Units(query) => plan_query::statement(query),
        UsersStatement::Settle(settle) => {
            let view = sqlx::raw_sql(include_str!("sql/batch_view.sql"));
            view.execute(&mut *connection).await.map_err(at(OPERATION))?;
            settle_sql::prepared(settle)
        }
    };
    // The text of a settlement begins with PREPARE, which holds it to one statement that reads or writes rows: executing that
    // prepares it.
    let asked = match statement {
        UsersStatement::Units(_) => connection.prepare(AssertSqlSafe(text).into_sql_str()).await.map(|_| ()),
        UsersStatement::Settle(_) => {
            sqlx::query(AssertSqlSafe(text)).persistent(false).execute(connection).await.map(|_| ())
        }
    };
    match asked {
        Ok(()) => Ok(None),
        Err(error) => fault(OPERATION, &error).of_a_users_statement().map(Some),
    }
}

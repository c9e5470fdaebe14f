//! Whether SQLite understands a user's statement: it is compiled as its handler has it, and never run.

use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, Executor, SqlSafeStr};

use super::error::{at, fault};
use super::one_statement::{READS, WRITES, one_statement};
use super::plan_query;
use crate::store::{StoreError, UsersStatement};

const OPERATION: &str = "understands";

/// What is wrong with a statement; `None`: nothing.
pub(super) async fn understands(
    connection: &mut SqliteConnection,
    statement: UsersStatement<'_>,
) -> Result<Option<String>, StoreError> {
    let text = match statement {
        UsersStatement::Units(query) => one_statement(query, &READS).map(plan_query::statement),
        UsersStatement::Settle(settle) => {
            // The session's own, and gone with it.
            let table = sqlx::raw_sql(include_str!("sql/batch_table.sql"));
            table.execute(&mut *connection).await.map_err(at(OPERATION))?;
            one_statement(settle, &WRITES).map(str::to_owned)
        }
    };
    let text = match text {
        Ok(text) => text,
        Err(why) => return Ok(Some(why)),
    };
    match connection.prepare(AssertSqlSafe(text).into_sql_str()).await {
        Ok(_) => Ok(None),
        Err(error) => fault(OPERATION, &error).of_a_users_statement().map(Some),
    }
}

//! Planning by a query of the user's: for the handlers `sql`, `http` and `command`.
//!
//! Invariants:
//! - The query is a sub-select of one prepared statement, behind a savepoint that is taken after the fence was entered: what
//!   it does wrong ends neither the transaction nor the tenure.
//! - What it does wrong, and units that cannot be told apart, give the run up; a fault of the store is none of that.

use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Row};

use super::error::{at, fault};
use super::plan::{OPERATION, Page};
use crate::domain::Claim;
use crate::store::planned::{LEFT_OUT, PlannedUnit, judge_planned};
use crate::store::{OpenRun, StoreError};

/// Around what the user's query replaces.
const FROM: &str = "-- In place of what stands between these two lines, the user's query.\n";
const TO: &str = "-- To here.\n";

/// The statement of a page, with the user's query in it.
pub(super) fn statement(query: &str) -> String {
    let file = include_str!("sql/plan_query_page.sql");
    let (before, rest) = file.split_once(FROM).expect("the file has the line");
    let (_, after) = rest.split_once(TO).expect("the file has the line");
    // On lines of its own: it may end in a comment.
    format!("{before}{}\n{after}", query.trim_end().trim_end_matches(';'))
}

/// Writes one page, or says why the run cannot be planned; then nothing of the page is written.
///
/// # Errors
/// A fault of the store.
pub(super) async fn page(
    conn: &mut PgConnection,
    claim: &Claim,
    run: &OpenRun,
    query: &str,
    after: Option<&str>,
    limit: u32,
) -> Result<Result<Page, String>, StoreError> {
    sqlx::query(include_str!("sql/plan_query_alone.sql"))
        .bind(run.job_id)
        .execute(&mut *conn)
        .await
        .map_err(at(OPERATION))?;
    sqlx::raw_sql("savepoint plan_query").execute(&mut *conn).await.map_err(at(OPERATION))?;
    let asked = sqlx::query(AssertSqlSafe(statement(query)))
        .persistent(false)
        .bind(run.id)
        .bind(run.job_id)
        .bind(after)
        // One more than the page: that there is a next one, and whether it begins with the key that this one ends with.
        .bind(i64::from(limit) + 1)
        .fetch_all(&mut *conn)
        .await
        .and_then(|rows| {
            let unit = |row: &sqlx::postgres::PgRow| {
                Ok((row.try_get("key")?, row.try_get("payload")?, row.try_get("elsewhere")?))
            };
            rows.iter().map(unit).collect::<Result<Vec<PlannedUnit>, sqlx::Error>>()
        });
    let rows = match asked {
        Ok(rows) => rows,
        Err(error) => {
            let words = fault(OPERATION, &error).of_a_users_statement()?;
            sqlx::raw_sql("rollback to savepoint plan_query").execute(conn).await.map_err(at(OPERATION))?;
            return Ok(Err(format!("the query for units failed: {words}")));
        }
    };
    let page = match judge_planned(rows, limit) {
        Ok(page) => page,
        Err(why) => return Ok(Err(why)),
    };
    if page.left_out > 0 {
        tracing::warn!(run = run.id, left_out = page.left_out, "{LEFT_OUT}");
    }
    let (keys, payloads): (Vec<String>, Vec<Option<String>>) = page.units.into_iter().unzip();
    let units: i64 = sqlx::query_scalar(include_str!("sql/plan_query_units.sql"))
        .bind(run.id)
        .bind(claim.election.as_str())
        .bind(keys)
        .bind(payloads)
        .fetch_one(conn)
        .await
        .map_err(at(OPERATION))?;
    Ok(Ok(Page { units: units.unsigned_abs(), next: page.next }))
}

/// Gives a run up that cannot be planned; what was planned of it is withdrawn afterwards, in pages.
///
/// # Errors
/// Any [`StoreError`]; the caller rolls back.
pub(super) async fn give_up(conn: &mut PgConnection, claim: &Claim, run: i64, why: &str) -> Result<(), StoreError> {
    sqlx::query(include_str!("sql/plan_query_give_up.sql"))
        .bind(run)
        .bind(claim.election.as_str())
        .bind(why)
        .execute(conn)
        .await
        .map(|_| ())
        .map_err(at(OPERATION))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_query_stands_on_lines_of_its_own_and_without_its_semicolon() {
        let text = statement("select 1 as key, null as payload -- done;\n;\n");
        assert!(text.contains("from (\nselect 1 as key, null as payload -- done;\n\n"), "{text}");
        assert!(!text.contains("select null::text as key"), "{text}");
    }
}

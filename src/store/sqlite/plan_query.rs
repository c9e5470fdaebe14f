//! Planning by a query of the user's: for the handlers `sql`, `http` and `command`.
//!
//! Invariants: the query is a sub-select of one statement; what it does wrong, and units that cannot be told apart, set the
//! run aside; a fault of the store is none of that. A statement that fails leaves the transaction as it was.

use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{AssertSqlSafe, Row};

use super::error::{at, fault};
use super::one_statement::{READS, one_statement};
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
    format!("{before}{query}\n{after}")
}

/// Reads one page, or says why the run cannot be planned.
///
/// # Errors
/// A fault of the store.
pub(super) async fn page(
    conn: &mut SqliteConnection,
    run: &OpenRun,
    query: &str,
    after: Option<&str>,
    limit: u32,
) -> Result<Result<Page, String>, StoreError> {
    let query = match one_statement(query, &READS) {
        Ok(query) => query,
        Err(why) => return Ok(Err(format!("the query for units: {why}"))),
    };
    let asked = sqlx::query(AssertSqlSafe(statement(query)))
        .persistent(false)
        .bind(run.id)
        .bind(run.job_id)
        .bind(after)
        // One more than the page: that there is a next one, and whether it begins with the key that this one ends with.
        .bind(i64::from(limit) + 1)
        .fetch_all(conn)
        .await
        .and_then(|rows| {
            let unit = |row: &SqliteRow| Ok((row.try_get("key")?, row.try_get("payload")?, row.try_get("elsewhere")?));
            rows.iter().map(unit).collect::<Result<Vec<PlannedUnit>, sqlx::Error>>()
        });
    let rows = match asked {
        Ok(rows) => rows,
        Err(error) => {
            let words = fault(OPERATION, &error).of_a_users_statement()?;
            return Ok(Err(format!("the query for units failed: {words}")));
        }
    };
    let page = judge_planned(rows, limit);
    if let Ok(page) = &page
        && page.left_out > 0
    {
        tracing::warn!(run = run.id, left_out = page.left_out, "{LEFT_OUT}");
    }
    Ok(page.map(|page| Page {
        is_last: page.next.is_none(),
        units: page.units.into_iter().map(|(key, payload)| (key, None, None, payload)).collect(),
    }))
}

/// Gives a run up that cannot be planned; what was planned of it is withdrawn afterwards, in pages.
///
/// # Errors
/// Any [`StoreError`]; the caller rolls back.
pub(super) async fn give_up(conn: &mut SqliteConnection, claim: &Claim, run: i64, why: &str) -> Result<(), StoreError> {
    sqlx::query(include_str!("sql/plan_query_give_up.sql"))
        .bind(run)
        .bind(claim.election.as_str())
        .bind(why)
        .execute(conn)
        .await
        .map(|_| ())
        .map_err(at(OPERATION))
}

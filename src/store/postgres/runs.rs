//! Runs for people: the list, and one with its batches and sums.

use std::collections::BTreeMap;

use sqlx::Row;
use sqlx::postgres::{PgConnection, PgRow};

use super::columns::{count, currency, election_name, job_name, run_kind, run_state, small_count, wide};
use super::error::at;
use crate::domain::JobName;
use crate::domain::run::RunState;
pub(super) use crate::store::bounds::LIST_ROWS;
use crate::store::{RunFilter, RunSummary, RunView, StoreError, UnitCounts};

/// Which runs a statement reads, beyond a person's filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Only {
    /// Any.
    Any,
    /// Those that are planning or open.
    Open,
    /// This one.
    One(i64),
}

/// Runs, newest due first.
pub(super) async fn runs(connection: &mut PgConnection, filter: &RunFilter) -> Result<Vec<RunSummary>, StoreError> {
    let rows = rows(connection, filter, Only::Any).await.map_err(at("runs"))?;
    rows.iter().map(summary).collect::<Result<_, _>>().map_err(at("runs"))
}

/// The rows of `runs.sql`.
pub(super) async fn rows(
    connection: &mut PgConnection,
    filter: &RunFilter,
    only: Only,
) -> Result<Vec<PgRow>, sqlx::Error> {
    let one = match only {
        Only::Any | Only::Open => None,
        Only::One(run) => Some(run),
    };
    sqlx::query(include_str!("sql/runs.sql"))
        .bind(filter.job.as_ref().map(JobName::as_str))
        .bind(filter.state.map(RunState::as_str))
        .bind(filter.below)
        .bind(one)
        .bind(i64::from(filter.limit.clamp(1, LIST_ROWS)))
        .bind(only == Only::Open)
        .fetch_all(connection)
        .await
}

/// Reads one line of the list.
pub(super) fn summary(row: &PgRow) -> Result<RunSummary, sqlx::Error> {
    let mut units = UnitCounts {
        total: 0,
        pending: count(row, "pending")?,
        settled: count(row, "settled")?,
        carried: count(row, "carried")?,
        empty: count(row, "empty")?,
        set_aside: count(row, "set_aside")?,
    };
    units.total = units.pending + units.settled + units.carried + units.empty + units.set_aside;
    Ok(RunSummary {
        id: row.try_get("id")?,
        job: job_name(row, "job")?,
        election: election_name(row, "election")?,
        kind: run_kind(row, "kind")?,
        tick: row.try_get("tick")?,
        due_at: row.try_get("due_at")?,
        state: run_state(row, "state")?,
        why: row.try_get("why")?,
        overdue: row.try_get("overdue")?,
        lateness_ms: row.try_get("lateness_ms")?,
        opened_term: row.try_get("opened_term")?,
        opened_at: row.try_get("opened_at")?,
        finished_at: row.try_get("finished_at")?,
        units,
    })
}

/// One run.
pub(super) async fn run_by_id(connection: &mut PgConnection, run: i64) -> Result<Option<RunView>, StoreError> {
    read_run(connection, run).await.map_err(at("run_by_id"))
}

async fn read_run(connection: &mut PgConnection, run: i64) -> Result<Option<RunView>, sqlx::Error> {
    let filter = RunFilter { limit: 1, ..RunFilter::default() };
    let found = rows(connection, &filter, Only::One(run)).await?;
    let Some(row) = found.first() else { return Ok(None) };
    let batches = sqlx::query(include_str!("sql/run_batches.sql")).bind(run).fetch_all(&mut *connection).await?;
    let paid_out = sqlx::query(include_str!("sql/run_paid_out.sql")).bind(run).fetch_all(connection).await?;
    Ok(Some(RunView {
        summary: summary(row)?,
        cutoff_at: row.try_get("cutoff_at")?,
        value_date: row.try_get("value_date")?,
        fingerprint: row.try_get("fingerprint")?,
        calendar_fingerprint: row.try_get("calendar_fingerprint")?,
        request_id: row.try_get("request_id")?,
        batches: batches
            .iter()
            .map(|row| Ok((row.try_get("term")?, count(row, "batches")?)))
            .collect::<Result<_, sqlx::Error>>()?,
        paid_out: paid_out.iter().map(sum_per_currency).collect::<Result<BTreeMap<_, _>, _>>()?,
        deaths: small_count(row, "deaths")?,
    }))
}

/// A currency with its sum, in major units.
pub(super) fn sum_per_currency(row: &PgRow) -> Result<(String, String), sqlx::Error> {
    let currency = currency(row, "currency")?;
    Ok((currency.code().to_owned(), currency.format(wide(row, "amount")?)))
}

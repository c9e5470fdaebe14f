//! The report of a run, read in one snapshot: its sums by part, and its payouts.

use chrono::{DateTime, NaiveDate, Utc};
use sqlx::Row;
use sqlx::sqlite::{SqliteConnection, SqliteRow};

use super::columns::{count, currency, date, date_text, instruction_state, json_text, micros, unreadable, wide};
use super::error::at;
use super::runs::run_by_id;
use crate::domain::JobName;
use crate::store::report::{Part, Sums};
use crate::store::{PAYOUTS_REPORTED, ReportedPayout, RunReport, StoreError};

const OPERATION: &str = "report";

/// The reports of a job's runs with a tick in that second, oldest first.
pub(super) async fn report(
    connection: &mut SqliteConnection,
    job: &JobName,
    tick: DateTime<Utc>,
) -> Result<Vec<RunReport>, StoreError> {
    let runs: Vec<i64> = sqlx::query_scalar(include_str!("sql/report_runs.sql"))
        .bind(job.as_str())
        .bind(micros(tick))
        .fetch_all(&mut *connection)
        .await
        .map_err(at(OPERATION))?;
    let mut reports = Vec::with_capacity(runs.len());
    for run in runs {
        let Some(view) = run_by_id(&mut *connection, run).await? else { continue };
        let (payouts, payouts_left_out) = payouts(&mut *connection, run).await.map_err(at(OPERATION))?;
        reports.push(RunReport {
            run: view.summary,
            cutoff_at: view.cutoff_at,
            value_date: view.value_date,
            currencies: sums(&mut *connection, run).await.map_err(at(OPERATION))?.roll_forward(),
            payouts,
            payouts_left_out,
        });
    }
    Ok(reports)
}

async fn sums(connection: &mut SqliteConnection, run: i64) -> Result<Sums, sqlx::Error> {
    let rows = sqlx::query(include_str!("sql/report_sums.sql")).bind(run).fetch_all(connection).await?;
    let mut sums = Sums::default();
    for row in &rows {
        let name: &str = row.try_get("part")?;
        let part = Part::parse(name).ok_or_else(|| unreadable("part", name, "a part of a report", "not known"))?;
        sums.add(currency(row, "currency")?, part, wide(row, "amount")?);
    }
    Ok(sums)
}

async fn payouts(connection: &mut SqliteConnection, run: i64) -> Result<(Vec<ReportedPayout>, u64), sqlx::Error> {
    let rows = sqlx::query(include_str!("sql/report_payouts.sql"))
        .bind(run)
        .bind(i64::from(PAYOUTS_REPORTED))
        .fetch_all(connection)
        .await?;
    let all = rows.first().map_or(Ok(0), |row| count(row, "payouts"))?;
    let shown = rows.iter().map(payout).collect::<Result<Vec<_>, _>>()?;
    let left_out = all.saturating_sub(shown.len() as u64);
    Ok((shown, left_out))
}

/// Payouts that a bank statement is compared with.
pub(super) async fn stated(
    connection: &mut SqliteConnection,
    keys: &[String],
    references: &[String],
    (from, to): (NaiveDate, NaiveDate),
) -> Result<Vec<ReportedPayout>, StoreError> {
    let operation = "reconcile";
    let rows = sqlx::query(include_str!("sql/stated_payouts.sql"))
        .bind(json_text(keys).map_err(at(operation))?)
        .bind(json_text(references).map_err(at(operation))?)
        .bind(date_text(from))
        .bind(date_text(to))
        .bind(i64::from(PAYOUTS_REPORTED))
        .fetch_all(connection)
        .await
        .map_err(at(operation))?;
    rows.iter().map(payout).collect::<Result<_, _>>().map_err(at(operation))
}

fn payout(row: &SqliteRow) -> Result<ReportedPayout, sqlx::Error> {
    let currency = currency(row, "currency")?;
    Ok(ReportedPayout {
        key: row.try_get("idempotency_key")?,
        merchant: row.try_get("merchant")?,
        amount: currency.format(row.try_get::<i64, _>("amount")?),
        currency: currency.code().to_owned(),
        value_date: row.try_get::<Option<&str>, _>("value_date")?.map(|_| date(row, "value_date")).transpose()?,
        reference: row.try_get("external_reference")?,
        return_reference: row.try_get("return_reference")?,
        state: instruction_state(row, "state")?,
        reason: row.try_get("reason")?,
    })
}

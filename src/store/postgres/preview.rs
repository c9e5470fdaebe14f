//! What runs of a ledger job would take of what is open now.

use chrono::{DateTime, Utc};
use sqlx::Row;
use sqlx::postgres::{PgConnection, PgRow};

use super::columns::{count, currency, wide};
use super::error::at;
use super::settle_ledger::{selected_currencies, selected_merchants, sources};
use crate::domain::JobName;
use crate::domain::job::LedgerDefinition;
use crate::store::{PreviewLine, StoreError};

/// By cutoff and currency.
pub(super) async fn preview(
    connection: &mut PgConnection,
    job: &JobName,
    ledger: &LedgerDefinition,
    cutoffs: &[DateTime<Utc>],
) -> Result<Vec<PreviewLine>, StoreError> {
    let operation = "preview";
    let minima: (Vec<&str>, Vec<i64>) =
        ledger.minimum_payout.iter().map(|(currency, minimum)| (currency.code(), *minimum)).unzip();
    let rows = sqlx::query(include_str!("sql/preview_ledger.sql"))
        .bind(job.as_str())
        .bind(cutoffs)
        .bind(sources(ledger))
        .bind(selected_currencies(ledger))
        .bind(selected_merchants(ledger))
        .bind(minima.0)
        .bind(minima.1)
        .fetch_all(connection)
        .await
        .map_err(at(operation))?;
    rows.iter().map(line).collect::<Result<_, _>>().map_err(at(operation))
}

fn line(row: &PgRow) -> Result<PreviewLine, sqlx::Error> {
    let currency = currency(row, "currency")?;
    let money = |column: &str| wide(row, column).map(|minor| currency.format(minor));
    Ok(PreviewLine {
        cutoff: usize::try_from(row.try_get::<i64, _>("cutoff")?).unwrap_or(usize::MAX),
        currency: currency.code().to_owned(),
        units: count(row, "units")?,
        entries: count(row, "entries")?,
        amount: money("amount")?,
        fees: money("fees")?,
        payouts: count(row, "payouts")?,
        paid: money("paid")?,
    })
}

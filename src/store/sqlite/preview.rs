//! What runs of a ledger job would take of what is open now.

use chrono::{DateTime, Utc};
use sqlx::Row;
use sqlx::sqlite::{SqliteConnection, SqliteRow};

use super::columns::{count, currency, json_text, micros, wide};
use super::error::at;
use crate::domain::JobName;
use crate::domain::job::LedgerDefinition;
use crate::domain::money::Currency;
use crate::store::preview::Previewed;
use crate::store::{PreviewLine, StoreError};

/// By cutoff and currency.
pub(super) async fn preview(
    connection: &mut SqliteConnection,
    job: &JobName,
    ledger: &LedgerDefinition,
    cutoffs: &[DateTime<Utc>],
) -> Result<Vec<PreviewLine>, StoreError> {
    let operation = "preview";
    let cutoffs: Vec<i64> = cutoffs.iter().map(|cutoff| micros(*cutoff)).collect();
    let currencies: Vec<&str> = ledger.currencies.iter().map(Currency::code).collect();
    let minima: Vec<(&str, i64)> =
        ledger.minimum_payout.iter().map(|(currency, minimum)| (currency.code(), *minimum)).collect();
    let rows = sqlx::query(include_str!("sql/preview_ledger.sql"))
        .bind(job.as_str())
        .bind(json_text(&cutoffs).map_err(at(operation))?)
        .bind(json_text(&ledger.sources).map_err(at(operation))?)
        .bind(json_text(&currencies).map_err(at(operation))?)
        .bind(json_text(&ledger.merchants).map_err(at(operation))?)
        .bind(json_text(&minima).map_err(at(operation))?)
        .fetch_all(connection)
        .await
        .map_err(at(operation))?;
    let mut found = Previewed::default();
    for row in &rows {
        pair(row, &mut found).map_err(at(operation))?;
    }
    Ok(found.lines())
}

fn pair(row: &SqliteRow, found: &mut Previewed) -> Result<(), sqlx::Error> {
    let cutoff = usize::try_from(row.try_get::<i64, _>("cutoff")?).unwrap_or(usize::MAX);
    let sums = (wide(row, "amount")?, wide(row, "fees")?);
    found.add(cutoff, currency(row, "currency")?, count(row, "entries")?, sums, row.try_get("minimum")?);
    Ok(())
}

//! Units for people, each with its instructions.

use std::collections::HashMap;

use sqlx::Row;
use sqlx::sqlite::{SqliteConnection, SqliteRow};

use super::columns::{json_text, maybe_time, small_count, unit_state, unreadable};
use super::error::at;
use super::runs::LIST_ROWS;
use crate::domain::money::Currency;
use crate::domain::unit::UnitState;
use crate::store::{InstructionView, StoreError, UnitFilter, UnitView};

/// Units, in the order of ids.
pub(super) async fn units(connection: &mut SqliteConnection, filter: &UnitFilter) -> Result<Vec<UnitView>, StoreError> {
    read(connection, filter).await.map_err(at("units"))
}

async fn read(connection: &mut SqliteConnection, filter: &UnitFilter) -> Result<Vec<UnitView>, sqlx::Error> {
    let query = match filter.run {
        Some(run) => sqlx::query(include_str!("sql/units_of_run.sql")).bind(run),
        None if filter.state == Some(UnitState::SetAside) => sqlx::query(include_str!("sql/units_set_aside.sql")),
        None => sqlx::query(include_str!("sql/units.sql")),
    };
    let rows = query
        .bind(filter.state.map(UnitState::as_str))
        .bind(filter.key.as_deref())
        .bind(filter.above)
        .bind(i64::from(filter.limit.clamp(1, LIST_ROWS)))
        .fetch_all(&mut *connection)
        .await?;
    let mut units = rows.iter().map(unit).collect::<Result<Vec<_>, _>>()?;
    let ids = json_text(&units.iter().map(|unit| unit.id).collect::<Vec<_>>())?;
    let rows = sqlx::query(include_str!("sql/unit_instructions.sql")).bind(ids).fetch_all(connection).await?;
    let mut instructions: HashMap<i64, Vec<InstructionView>> = HashMap::new();
    for row in &rows {
        instructions.entry(row.try_get("unit_id")?).or_default().push(instruction(row)?);
    }
    for unit in &mut units {
        unit.instructions = instructions.remove(&unit.id).unwrap_or_default();
    }
    Ok(units)
}

fn unit(row: &SqliteRow) -> Result<UnitView, sqlx::Error> {
    Ok(UnitView {
        id: row.try_get("id")?,
        run: row.try_get("run_id")?,
        key: row.try_get("key")?,
        state: unit_state(row, "state")?,
        attempts: small_count(row, "attempts")?,
        next_attempt_at: maybe_time(row, "next_attempt_at")?,
        last_error: row.try_get("last_error")?,
        term: row.try_get("term")?,
        net: amount(row, "net")?,
        ended_at: maybe_time(row, "ended_at")?,
        instructions: Vec::new(),
    })
}

fn instruction(row: &SqliteRow) -> Result<InstructionView, sqlx::Error> {
    Ok(InstructionView {
        key: row.try_get("idempotency_key")?,
        kind: row.try_get("kind")?,
        state: row.try_get("state")?,
        reason: row.try_get("reason")?,
        amount: amount(row, "amount")?,
        currency: row.try_get("currency")?,
        attempts: small_count(row, "attempts")?,
        in_doubt: row.try_get("in_doubt")?,
        term: row.try_get("term")?,
    })
}

/// An amount in the row's currency, in major units; none where either is missing.
fn amount(row: &SqliteRow, column: &str) -> Result<Option<String>, sqlx::Error> {
    let (minor, code): (Option<i64>, Option<&str>) = (row.try_get(column)?, row.try_get("currency")?);
    let (Some(minor), Some(code)) = (minor, code) else { return Ok(None) };
    let currency = Currency::new(code).map_err(|error| unreadable("currency", code, "a currency", error))?;
    Ok(Some(currency.format(minor)))
}

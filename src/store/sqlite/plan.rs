//! Planning: a run's units, page by page; the last page opens the run.
//!
//! Invariant: a page may be written again, and changes nothing then. What a unit settles is decided when it binds, not here.

use sqlx::Row;
use sqlx::sqlite::SqliteConnection;

use super::columns::{json_text, micros};
use super::error::at;
use super::plan_query;
use super::tx::Done;
use crate::domain::Claim;
use crate::domain::job::LedgerDefinition;
use crate::domain::run::RunState;
use crate::store::{OpenRun, PlanOutcome, PlanSource, StoreError};

pub(super) const OPERATION: &str = "plan_page";

/// One unit to be: key, merchant, currency, payload.
pub(super) type Unit = (String, Option<String>, Option<String>, Option<String>);

/// One page.
pub(super) struct Page {
    pub(super) units: Vec<Unit>,
    /// Whether it is the last one.
    pub(super) is_last: bool,
}

/// Writes one page in an open transaction that has entered the fence.
///
/// # Errors
/// Any [`StoreError`]; the caller rolls back.
pub(super) async fn plan_page(
    conn: &mut SqliteConnection,
    claim: &Claim,
    run: &OpenRun,
    source: &PlanSource,
    after: Option<&str>,
    limit: u32,
) -> Result<Done<PlanOutcome>, StoreError> {
    let found: Option<(String, Option<String>)> = sqlx::query_as(include_str!("sql/plan_state.sql"))
        .bind(run.id)
        .bind(claim.election.as_str())
        .fetch_optional(&mut *conn)
        .await
        .map_err(at(OPERATION))?;
    let (state, why) = found.unzip();
    let state = run_state(OPERATION, run.id, claim, state.as_deref())?;
    if state != RunState::Planning {
        return Ok(Done::RollBack(PlanOutcome::NotPlanning(state)));
    }
    if let Some(error) = why.flatten() {
        return Ok(Done::RollBack(PlanOutcome::SetAside { error }));
    }
    let limit = limit.max(1);
    let page = match source {
        PlanSource::Ledger(definition) => {
            ledger_page(conn, run, definition, after, limit).await.map_err(at(OPERATION))?
        }
        PlanSource::Keys(keys) => keys_page(keys, after, limit),
        PlanSource::Query(query) => match plan_query::page(conn, run, query, after, limit).await? {
            Ok(page) => page,
            Err(error) => {
                plan_query::give_up(conn, claim, run.id, &error).await?;
                return Ok(Done::Commit(PlanOutcome::SetAside { error }));
            }
        },
    };
    let units = write(conn, claim, run, &page.units).await.map_err(at(OPERATION))?;
    let next = if page.is_last { None } else { page.units.last().map(|(key, ..)| key.clone()) };
    if next.is_none() {
        sqlx::query(include_str!("sql/plan_open.sql"))
            .bind(run.id)
            .bind(claim.election.as_str())
            .execute(&mut *conn)
            .await
            .map_err(at(OPERATION))?;
    }
    crate::point!("store.plan.before_commit");
    Ok(Done::Commit(PlanOutcome::Planned { units, next }))
}

/// Reads the state of a run that was looked for in the claim's election.
pub(super) fn run_state(
    operation: &'static str,
    run: i64,
    claim: &Claim,
    found: Option<&str>,
) -> Result<RunState, StoreError> {
    let Some(found) = found else {
        return Err(StoreError::Broken { operation, detail: format!("election {} has no run {run}", claim.election) });
    };
    RunState::parse(found)
        .ok_or_else(|| StoreError::Broken { operation, detail: format!("run {run} is in the unknown state {found:?}") })
}

async fn ledger_page(
    conn: &mut SqliteConnection,
    run: &OpenRun,
    definition: &LedgerDefinition,
    after: Option<&str>,
    limit: u32,
) -> Result<Page, sqlx::Error> {
    let (currency, merchant) = after.map(|key| key.split_once(':').unwrap_or((key, ""))).unzip();
    let currencies: Vec<&str> = definition.currencies.iter().map(crate::domain::money::Currency::code).collect();
    let minima: Vec<(&str, i64)> =
        definition.minimum_payout.iter().map(|(currency, minimum)| (currency.code(), *minimum)).collect();
    let rows = sqlx::query(include_str!("sql/plan_ledger_page.sql"))
        .bind(run.job_id)
        .bind(micros(run.cutoff_at))
        .bind(json_text(&definition.sources)?)
        .bind(json_text(&currencies)?)
        .bind(json_text(&definition.merchants)?)
        .bind(currency)
        .bind(merchant)
        .bind(i64::from(limit))
        .bind(json_text(&minima)?)
        .fetch_all(conn)
        .await?;
    let mut units = Vec::with_capacity(rows.len());
    for row in &rows {
        let (currency, merchant): (String, String) = (row.try_get("currency")?, row.try_get("merchant")?);
        units.push((format!("{currency}:{merchant}"), Some(merchant), Some(currency), None));
    }
    let is_last = (units.len() as u64) < u64::from(limit);
    Ok(Page { units, is_last })
}

fn keys_page(keys: &[String], after: Option<&str>, limit: u32) -> Page {
    let mut page: Vec<&str> =
        keys.iter().map(String::as_str).filter(|key| after.is_none_or(|after| *key > after)).collect();
    page.sort_unstable();
    page.dedup();
    let left = page.len();
    page.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    let is_last = page.len() == left;
    Page { units: page.into_iter().map(|key| (key.to_owned(), None, None, None)).collect(), is_last }
}

async fn write(conn: &mut SqliteConnection, claim: &Claim, run: &OpenRun, units: &[Unit]) -> Result<u64, sqlx::Error> {
    let written = sqlx::query(include_str!("sql/plan_units.sql"))
        .bind(run.id)
        .bind(claim.election.as_str())
        .bind(json_text(units)?)
        .execute(conn)
        .await?;
    Ok(written.rows_affected())
}

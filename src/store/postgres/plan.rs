//! Planning: a run's units, page by page; the last page opens the run.
//!
//! Invariant: a page may be written again, and changes nothing then. What a unit settles is decided when it binds, not here.

use sqlx::Row;
use sqlx::postgres::PgConnection;

use super::error::at;
use super::plan_query;
use super::settle_ledger::{selected_currencies, selected_merchants, sources};
use super::tx::Done;
use crate::domain::Claim;
use crate::domain::job::LedgerDefinition;
use crate::domain::run::RunState;
use crate::store::{OpenRun, PlanOutcome, PlanSource, StoreError};

pub(super) const OPERATION: &str = "plan_page";

/// What one page brought.
pub(super) struct Page {
    /// Units inserted.
    pub(super) units: u64,
    /// Its last key; `None` where it is the last page.
    pub(super) next: Option<String>,
}

/// Writes one page in an open transaction that has entered the fence.
///
/// # Errors
/// Any [`StoreError`]; the caller rolls back.
pub(super) async fn plan_page(
    conn: &mut PgConnection,
    claim: &Claim,
    run: &OpenRun,
    source: &PlanSource,
    after: Option<&str>,
    limit: u32,
) -> Result<Done<PlanOutcome>, StoreError> {
    let (state, given_up) = state(conn, claim, run).await?;
    if state != RunState::Planning {
        return Ok(Done::RollBack(PlanOutcome::NotPlanning(state)));
    }
    if let Some(error) = given_up {
        return Ok(Done::RollBack(PlanOutcome::SetAside { error }));
    }
    let limit = limit.max(1);
    let page = match source {
        PlanSource::Ledger(definition) => {
            ledger_page(conn, claim, run, definition, after, limit).await.map_err(at(OPERATION))?
        }
        PlanSource::Keys(keys) => keys_page(conn, claim, run, keys, after, limit).await.map_err(at(OPERATION))?,
        PlanSource::Query(query) => match plan_query::page(conn, claim, run, query, after, limit).await? {
            Ok(page) => page,
            Err(error) => {
                plan_query::give_up(conn, claim, run.id, &error).await?;
                return Ok(Done::Commit(PlanOutcome::SetAside { error }));
            }
        },
    };
    if page.next.is_none() {
        let opened = sqlx::query(include_str!("sql/plan_open.sql"))
            .bind(run.id)
            .bind(claim.election.as_str())
            .execute(&mut *conn)
            .await
            .map_err(at(OPERATION))?;
        if opened.rows_affected() != 1 {
            // Another batch of this tenure opened it between the two statements.
            let (state, _) = self::state(conn, claim, run).await?;
            return Ok(Done::RollBack(PlanOutcome::NotPlanning(state)));
        }
    }
    crate::point!("store.plan.before_commit");
    Ok(Done::Commit(PlanOutcome::Planned { units: page.units, next: page.next }))
}

/// The state of a run, and why it is given up where it is.
async fn state(
    conn: &mut PgConnection,
    claim: &Claim,
    run: &OpenRun,
) -> Result<(RunState, Option<String>), StoreError> {
    let found: Option<(String, Option<String>)> = sqlx::query_as(include_str!("sql/plan_state.sql"))
        .bind(run.id)
        .bind(claim.election.as_str())
        .fetch_optional(conn)
        .await
        .map_err(at(OPERATION))?;
    let (state, why) = found.unzip();
    Ok((run_state(OPERATION, run.id, claim, state.as_deref())?, why.flatten()))
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
    conn: &mut PgConnection,
    claim: &Claim,
    run: &OpenRun,
    definition: &LedgerDefinition,
    after: Option<&str>,
    limit: u32,
) -> Result<Page, sqlx::Error> {
    let (currency, merchant) = after.map(|key| key.split_once(':').unwrap_or((key, ""))).unzip();
    let minima: (Vec<&str>, Vec<i64>) =
        definition.minimum_payout.iter().map(|(currency, minimum)| (currency.code(), *minimum)).unzip();
    let row = sqlx::query(include_str!("sql/plan_ledger_page.sql"))
        .bind(run.id)
        .bind(claim.election.as_str())
        .bind(run.job_id)
        .bind(run.cutoff_at)
        .bind(sources(definition))
        .bind(selected_currencies(definition))
        .bind(selected_merchants(definition))
        .bind(currency)
        .bind(merchant)
        .bind(i64::from(limit))
        .bind(minima.0)
        .bind(minima.1)
        .fetch_one(conn)
        .await?;
    let (units, pairs): (i64, i64) = (row.try_get("units")?, row.try_get("pairs")?);
    let last: Option<String> = row.try_get("last_key")?;
    Ok(Page { units: units.unsigned_abs(), next: last.filter(|_| pairs >= i64::from(limit)) })
}

async fn keys_page(
    conn: &mut PgConnection,
    claim: &Claim,
    run: &OpenRun,
    keys: &[String],
    after: Option<&str>,
    limit: u32,
) -> Result<Page, sqlx::Error> {
    let mut page: Vec<&str> =
        keys.iter().map(String::as_str).filter(|key| after.is_none_or(|after| *key > after)).collect();
    page.sort_unstable();
    page.dedup();
    let left = page.len();
    page.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    let next = (page.len() < left).then(|| page.last().map(|key| (*key).to_owned())).flatten();
    let units: i64 = sqlx::query_scalar(include_str!("sql/plan_keys_page.sql"))
        .bind(run.id)
        .bind(claim.election.as_str())
        .bind(page)
        .fetch_one(conn)
        .await?;
    Ok(Page { units: units.unsigned_abs(), next })
}

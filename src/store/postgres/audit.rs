//! The store against its guarantees, in one snapshot, on the primary.
//!
//! The checks take nothing from the code that wrote what they look at: nets are summed anew from entries, keys and bytes
//! derived anew from their parts, fencing proved by the database's own transaction ids. They do not change anything.
//!
//! Deliberately absent: what the store cannot know by itself (whether a receiver paid, whether a tick of the schedule is
//! missing).

use chrono::{DateTime, Utc};
use futures_util::TryStreamExt;
use sqlx::Row;
use sqlx::postgres::{PgConnection, PgRow};
use uuid::Uuid;

use super::audit_checks::statement;
use super::columns::{count, currency, job_name, run_kind, small_count};
use super::error::at;
use super::runs::sum_per_currency;
use crate::store::checks::{Check, Instructed, Paid};
use crate::store::{AuditCheck, AuditReport, EXAMPLES_SHOWN, StoreError};

const OPERATION: &str = "audit";

/// Audits in an open, read-only transaction that sees one state.
///
/// # Errors
/// [`StoreError::ReadOnly`] on a standby, which may be behind; else any fault of the store.
pub(super) async fn audit(connection: &mut PgConnection) -> Result<AuditReport, StoreError> {
    let head =
        sqlx::query(include_str!("sql/audit_head.sql")).fetch_one(&mut *connection).await.map_err(at(OPERATION))?;
    if head.try_get("standby").map_err(at(OPERATION))? {
        return Err(StoreError::ReadOnly {
            operation: OPERATION,
            detail: "this is a standby: audit the primary, where everything that was acknowledged is".to_owned(),
        });
    }
    sqlx::query(include_str!("sql/audit_planner.sql")).execute(&mut *connection).await.map_err(at(OPERATION))?;
    check_all(connection, &head).await.map_err(at(OPERATION))
}

async fn check_all(connection: &mut PgConnection, head: &PgRow) -> Result<AuditReport, sqlx::Error> {
    let at_time: DateTime<Utc> = head.try_get("at")?;
    let deployment: Uuid = head.try_get("deployment_id")?;
    let mut checks = Vec::with_capacity(Check::ALL.len());
    for check in Check::ALL {
        checks.push(if check == Check::KeysAreDerived {
            derive_keys(connection, check, deployment).await?
        } else {
            run_check(connection, check).await?
        });
    }
    let open = sqlx::query(include_str!("sql/audit_open.sql")).fetch_all(connection).await?;
    Ok(AuditReport { at: at_time, checks, open: open.iter().map(sum_per_currency).collect::<Result<_, _>>()? })
}

async fn run_check(connection: &mut PgConnection, check: Check) -> Result<AuditCheck, sqlx::Error> {
    // Planned for these tables as they are: a plan of an empty store would be a bad one.
    let row = sqlx::query(statement(check)).bind(EXAMPLES_SHOWN).persistent(false).fetch_one(connection).await?;
    let examples = row.try_get::<Option<Vec<String>>, _>("examples")?.unwrap_or_default();
    Ok(check.found(count(&row, "violations")?, examples, row.try_get("not_proven")?))
}

/// Derives every key, and every payout's bytes, anew. Row by row: there may be more instructions than fit in memory.
async fn derive_keys(connection: &mut PgConnection, check: Check, deployment: Uuid) -> Result<AuditCheck, sqlx::Error> {
    let mut violations = 0_u64;
    let mut examples = Vec::new();
    let most = usize::try_from(EXAMPLES_SHOWN).unwrap_or(0);
    let mut rows = sqlx::query(statement(check)).persistent(false).fetch(connection);
    while let Some(row) = rows.try_next().await? {
        if let Some(what) = instructed(&row, deployment)?.differs() {
            violations += 1;
            if examples.len() < most {
                examples.push(what);
            }
        }
    }
    Ok(check.found(violations, examples, None))
}

fn instructed(row: &PgRow, deployment: Uuid) -> Result<Instructed<'_>, sqlx::Error> {
    let payout = if row.try_get::<&str, _>("kind")? == "payout" {
        Some(Paid {
            merchant: row.try_get("merchant")?,
            currency: currency(row, "currency")?,
            amount: row.try_get("amount")?,
            value_date: row.try_get("value_date")?,
            body: row.try_get("body")?,
        })
    } else {
        None
    };
    Ok(Instructed {
        id: row.try_get("id")?,
        key: row.try_get("idempotency_key")?,
        deployment,
        job: job_name(row, "job")?,
        run_kind: run_kind(row, "run_kind")?,
        tick: row.try_get("tick")?,
        request_id: row.try_get("request_id")?,
        unit_key: row.try_get("unit_key")?,
        generation: small_count(row, "generation")?,
        payout,
    })
}

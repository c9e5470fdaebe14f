//! The store against its guarantees, in one snapshot.
//!
//! The checks take nothing from the code that wrote what they look at: nets are summed anew from entries, keys and bytes
//! derived anew from their parts, fencing proved by the numbers of transactions, which nothing but the order of writing
//! makes. They do not change anything.
//!
//! Invariant: sums are kept in halves of 32 bits, in the database too: SQLite's own fail where they overflow, and what is
//! not a whole number there becomes a float.
//!
//! Deliberately absent: what the store cannot know by itself (whether a receiver paid, whether a tick of the schedule is
//! missing).

use futures_util::TryStreamExt;
use sqlx::Row;
use sqlx::sqlite::{SqliteConnection, SqliteRow};
use uuid::Uuid;

use super::audit_checks::statement;
use super::columns::{count, currency, date, id, job_name, json, maybe_id, run_kind, small_count, time};
use super::error::at;
use super::runs::sum_per_currency;
use crate::store::checks::{Check, Instructed, Paid};
use crate::store::{AuditCheck, AuditReport, EXAMPLES_SHOWN, StoreError};

const OPERATION: &str = "audit";

/// Audits in an open transaction that reads one state.
///
/// # Errors
/// Any fault of the store.
pub(super) async fn audit(connection: &mut SqliteConnection) -> Result<AuditReport, StoreError> {
    check_all(connection).await.map_err(at(OPERATION))
}

async fn check_all(connection: &mut SqliteConnection) -> Result<AuditReport, sqlx::Error> {
    let head = sqlx::query(include_str!("sql/audit_head.sql")).fetch_one(&mut *connection).await?;
    let deployment = id(&head, "deployment_id")?;
    let mut checks = Vec::with_capacity(Check::ALL.len());
    for check in Check::ALL {
        checks.push(if check == Check::KeysAreDerived {
            derive_keys(connection, check, deployment).await?
        } else {
            run_check(connection, check).await?
        });
    }
    let open = sqlx::query(include_str!("sql/audit_open.sql")).fetch_all(connection).await?;
    Ok(AuditReport {
        at: time(&head, "at")?,
        checks,
        open: open.iter().map(sum_per_currency).collect::<Result<_, _>>()?,
    })
}

async fn run_check(connection: &mut SqliteConnection, check: Check) -> Result<AuditCheck, sqlx::Error> {
    let row = sqlx::query(statement(check)).bind(EXAMPLES_SHOWN).persistent(false).fetch_one(connection).await?;
    let examples: Vec<String> = json(&row, "examples")?;
    let examples = examples.iter().map(|example| with_sums(example)).collect();
    Ok(check.found(count(&row, "violations")?, examples, row.try_get("not_proven")?))
}

/// What stands before and after a sum in halves.
const SUM: char = '\u{1}';

/// Writes the sums of an example (`high:low` between two [`SUM`]s) as one number each.
fn with_sums(example: &str) -> String {
    let mut parts = example.split(SUM);
    let mut text = parts.next().unwrap_or_default().to_owned();
    let mut is_sum = true;
    for part in parts {
        match part.split_once(':').and_then(|(high, low)| Some((high.parse().ok()?, low.parse().ok()?))) {
            Some((high, low)) if is_sum => {
                let (high, low): (i64, i64) = (high, low);
                text.push_str(&((i128::from(high) << 32) + i128::from(low)).to_string());
                is_sum = false;
            }
            Some(_) | None => {
                text.push_str(part);
                is_sum = true;
            }
        }
    }
    text
}

/// Derives every key, and every payout's bytes, anew. Row by row: there may be more instructions than fit in memory.
async fn derive_keys(
    connection: &mut SqliteConnection,
    check: Check,
    deployment: Uuid,
) -> Result<AuditCheck, sqlx::Error> {
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

fn instructed(row: &SqliteRow, deployment: Uuid) -> Result<Instructed<'_>, sqlx::Error> {
    let payout = if row.try_get::<&str, _>("kind")? == "payout" {
        Some(Paid {
            merchant: row.try_get("merchant")?,
            currency: currency(row, "currency")?,
            amount: row.try_get("amount")?,
            value_date: row.try_get::<Option<&str>, _>("value_date")?.map(|_| date(row, "value_date")).transpose()?,
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
        tick: time(row, "tick")?,
        request_id: maybe_id(row, "request_id")?,
        unit_key: row.try_get("unit_key")?,
        generation: small_count(row, "generation")?,
        payout,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_in_halves_are_written_as_one_number() {
        let whole = |high: i64, low: i64| with_sums(&format!("a {SUM}{high}:{low}{SUM} b"));
        assert_eq!(whole(0, 17), "a 17 b");
        assert_eq!(whole(-1, 4_294_967_295), "a -1 b");
        assert_eq!(whole(1 << 40, -5), format!("a {} b", (1_i128 << 72) - 5));
        assert_eq!(with_sums("no sum: 1:2"), "no sum: 1:2");
        assert_eq!(with_sums(&format!("{SUM}0:1{SUM}3:4{SUM}0:2{SUM}")), "13:42");
        assert_eq!(with_sums(&format!("x{SUM}y")), "xy");
    }
}

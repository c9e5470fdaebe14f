//! One in-store batch: claim, effect, states, instructions and its `batch` row, in one fenced transaction.
//!
//! Invariants:
//! - The row locks of the claim are the claim: a crash gives all of it back, and there is nothing to recover.
//! - The batch locks nothing of its run and changes nothing in it.
//! - A verdict on the units (money out of range, a broken constraint, our own statement time-out) is
//!   [`SettleOutcome::Failed`]; it writes nothing. Everything else that goes wrong is a fault of the store and no attempt.
//!
//! Deliberately absent: halving and attempts, which the tenure decides on, and a state of its own for a claimed unit.

use sqlx::Row;
use sqlx::postgres::{PgConnection, PgRow};
use uuid::Uuid;

use super::error::{at, verdict};
use super::settle_ledger::{self, LedgerRows};
use super::settle_sql;
use super::tx::Done;
use crate::domain::Claim;
use crate::domain::unit::UnitState;
use crate::store::{BatchCounts, BatchError, Effect, OpenRun, SettleOutcome, StoreError, UnitPick};

pub(super) const OPERATION: &str = "settle";

/// A unit that this transaction holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Claimed {
    /// Identity.
    pub(super) id: i64,
    /// Attempts behind it; compared when it ends.
    pub(super) attempts: i32,
    /// Grows with a retry after an instruction that was final without effect.
    pub(super) generation: i32,
    /// Its key.
    pub(super) key: String,
    /// Of a ledger unit.
    pub(super) merchant: Option<String>,
    /// Of a ledger unit.
    pub(super) currency: Option<String>,
}

impl Claimed {
    fn read(row: &PgRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            id: row.try_get("id")?,
            attempts: row.try_get("attempts")?,
            generation: row.try_get("generation")?,
            key: row.try_get("key")?,
            merchant: row.try_get("merchant")?,
            currency: row.try_get("currency")?,
        })
    }
}

/// Why a batch came to nothing.
#[derive(Debug)]
pub(super) enum Setback {
    /// A verdict on its units.
    Verdict(BatchError),
    /// A fault of the store.
    Fault(StoreError),
}

impl From<sqlx::Error> for Setback {
    fn from(error: sqlx::Error) -> Self {
        verdict(&error).map_or_else(|| Self::Fault(at(OPERATION)(error)), Self::Verdict)
    }
}

/// Settles one batch in an open transaction that has entered the fence.
///
/// # Errors
/// Any [`StoreError`]; the caller rolls back.
pub(super) async fn settle(
    conn: &mut PgConnection,
    claim: &Claim,
    deployment: Uuid,
    run: &OpenRun,
    pick: &UnitPick,
    effect: &Effect,
) -> Result<Done<SettleOutcome>, StoreError> {
    let units = claim_units(conn, claim, run, pick).await.map_err(at(OPERATION))?;
    let Some(last) = units.last() else { return Ok(Done::RollBack(SettleOutcome::Nothing)) };
    let last_unit = last.id;
    crate::point!("store.settle.after_claim", failed => failure(&failed));
    let counted = match effect {
        Effect::Ledger(definition) => settle_ledger::settle(conn, claim, deployment, run, definition, &units).await,
        Effect::Sql(definition) => settle_sql::settle(conn, claim, run, definition, &units).await,
        Effect::Mark(hook) => {
            let keys: Vec<String> = units.iter().map(|unit| unit.key.clone()).collect();
            match hook.run(&keys).await {
                Ok(()) => record(conn, claim, run, &LedgerRows::marked(&units)).await,
                Err(error) => Err(Setback::Verdict(error)),
            }
        }
    };
    crate::point!("store.settle.before_commit", failed => failure(&failed));
    match counted {
        Ok(counts) => {
            let taken = units.len() as u64;
            Ok(Done::Commit(SettleOutcome::Settled(BatchCounts { last_unit, taken, ..counts })))
        }
        Err(Setback::Verdict(error)) => {
            let units = units.iter().map(|unit| (unit.id, unit.attempts.unsigned_abs())).collect();
            Ok(Done::RollBack(SettleOutcome::Failed { units, error }))
        }
        Err(Setback::Fault(error)) => Err(error),
    }
}

#[cfg(feature = "chaos")]
fn failure(failed: &crate::chaos::Failed) -> StoreError {
    StoreError::TryAgain { operation: OPERATION, code: "40001".to_owned(), detail: failed.to_string() }
}

/// Takes the units of a pick and locks them. Answers them in the order of ids.
async fn claim_units(
    conn: &mut PgConnection,
    claim: &Claim,
    run: &OpenRun,
    pick: &UnitPick,
) -> Result<Vec<Claimed>, sqlx::Error> {
    let query = match pick {
        UnitPick::Fresh { after, limit } => sqlx::query(include_str!("sql/claim_fresh.sql"))
            .bind(run.id)
            .bind(claim.election.as_str())
            .bind(*after)
            .bind(i64::from(*limit)),
        UnitPick::Retry { limit } => sqlx::query(include_str!("sql/claim_retry.sql"))
            .bind(run.id)
            .bind(claim.election.as_str())
            .bind(i64::from(*limit)),
        UnitPick::Exactly(units) => sqlx::query(include_str!("sql/claim_exactly.sql"))
            .bind(run.id)
            .bind(claim.election.as_str())
            .bind(units.as_slice()),
    };
    let rows = query.fetch_all(conn).await?;
    let mut units = rows.iter().map(Claimed::read).collect::<Result<Vec<_>, _>>()?;
    units.sort_unstable_by_key(|unit| unit.id);
    Ok(units)
}

/// Writes what a batch comes to, in one statement, and compares every count with what was asked for.
pub(super) async fn record(
    conn: &mut PgConnection,
    claim: &Claim,
    run: &OpenRun,
    rows: &LedgerRows,
) -> Result<BatchCounts, Setback> {
    let counts = rows.counts();
    // Not kept prepared: a plan that is made for these very arrays knows how long they are.
    let written = rows
        .bind(sqlx::query(include_str!("sql/settle_record.sql")).persistent(false), claim, run, &counts)
        .fetch_one(conn)
        .await?;
    let expected = [
        ("units", rows.units.id.len()),
        ("journals", rows.journals.unit.len()),
        ("postings", rows.postings.unit.len()),
        ("carries", rows.carries.external_id.len()),
        ("instructions", rows.instructions.unit.len()),
    ];
    for (what, expected) in expected {
        let found: i64 = written.try_get(what)?;
        if u64::try_from(found).ok() != Some(expected as u64) {
            return Err(Setback::Fault(StoreError::Broken {
                operation: OPERATION,
                detail: format!("{expected} {what} were to be written, {found} were: the batch is rolled back"),
            }));
        }
    }
    Ok(BatchCounts { batch: written.try_get("batch")?, ..counts })
}

/// Counts units by the state that they end in.
pub(super) fn count(states: &[UnitState], state: UnitState) -> u64 {
    states.iter().filter(|found| **found == state).count() as u64
}

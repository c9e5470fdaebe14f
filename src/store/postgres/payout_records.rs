//! What came of payouts: recorded, with what follows from it for their receiver, or put back.
//!
//! Invariants:
//! - A try is recorded only while it is on the wire under this term and is the one that is named.
//! - The order of locks: instructions by id, then the receiver's row.

use sqlx::Row;
use sqlx::postgres::{PgConnection, PgRow};

use super::charge::{bounded, millis};
use super::columns::instruction_state;
use super::error::at;
use super::receivers::hear;
use super::tx::Done;
use crate::domain::Claim;
use crate::domain::instruction::InstructionState;
use crate::store::{Heard, PayoutFate, PayoutRecord, PayoutRecords, PayoutsRecorded, StoreError};

const RECORD: &str = "record_payouts";
const PUT_BACK: &str = "put_back_payouts";

/// Records what came of payouts, in an open transaction that has entered the fence.
///
/// # Errors
/// Any [`StoreError`]; the caller rolls back.
pub(super) async fn record_payouts(
    connection: &mut PgConnection,
    claim: &Claim,
    records: &PayoutRecords,
) -> Result<Done<PayoutsRecorded>, StoreError> {
    let rows = write(connection, claim, &records.records).await.map_err(at(RECORD))?;
    let told = Told::read(&rows).map_err(at(RECORD))?;
    told.check()?;
    let counts = |_, record: &PayoutRecord| told.states.iter().any(|(id, _)| *id == record.instruction);
    let heard = Heard::of_payouts(records, counts);
    let needs_resume = hear(connection, claim, &heard).await.map_err(at(RECORD))?;
    crate::point!("store.payouts.after_record");
    Ok(Done::Commit(PayoutsRecorded { states: told.states, needs_resume }))
}

async fn write(
    connection: &mut PgConnection,
    claim: &Claim,
    records: &[PayoutRecord],
) -> Result<Vec<PgRow>, sqlx::Error> {
    let fates: Vec<Fate> = records.iter().map(|record| Fate::of(&record.fate)).collect();
    sqlx::query(crate::sql!("sql/payouts_record.sql"))
        .bind(claim.election.as_str())
        .bind(claim.term.get())
        .bind(records.iter().map(|record| record.instruction).collect::<Vec<_>>())
        .bind(records.iter().map(|record| try_number(record.attempt)).collect::<Vec<_>>())
        .bind(fates.iter().map(|fate| fate.name).collect::<Vec<_>>())
        .bind(fates.iter().map(|fate| fate.error.as_deref()).collect::<Vec<_>>())
        .bind(fates.iter().map(|fate| fate.again_ms).collect::<Vec<_>>())
        .bind(fates.iter().map(|fate| fate.reference.as_deref()).collect::<Vec<_>>())
        .bind(records.iter().map(|record| record.asked).collect::<Vec<_>>())
        .fetch_all(connection)
        .await
}

/// A fate as bound to the statement.
struct Fate {
    name: &'static str,
    error: Option<String>,
    again_ms: Option<i64>,
    reference: Option<String>,
}

impl Fate {
    fn of(fate: &PayoutFate) -> Self {
        let (name, error, again_in, reference) = match fate {
            PayoutFate::Paid { reference } => ("paid", None, None, reference.as_deref()),
            PayoutFate::Mismatch { error } => ("mismatch", Some(error.as_str()), None, None),
            PayoutFate::Rejected { error } => ("rejected", Some(error.as_str()), None, None),
            PayoutFate::Unknown { error, again_in } => ("unknown", Some(error.as_str()), *again_in, None),
            PayoutFate::Back { left: true, error, again_in } => ("undone", error.as_deref(), *again_in, None),
            PayoutFate::Back { left: false, error, again_in } => ("back", error.as_deref(), *again_in, None),
        };
        Self { name, error: error.map(bounded), again_ms: again_in.map(millis), reference: reference.map(bounded) }
    }
}

/// What the statement answered.
struct Told {
    states: Vec<(i64, InstructionState)>,
    updated: i64,
    postings: i64,
    carries: i64,
}

impl Told {
    fn read(rows: &[PgRow]) -> Result<Self, sqlx::Error> {
        let mut told = Self { states: Vec::with_capacity(rows.len()), updated: 0, postings: 0, carries: 0 };
        for row in rows {
            told.states.push((row.try_get("id")?, instruction_state(row, "state")?));
            told.updated = row.try_get("updated")?;
            told.postings = row.try_get("postings")?;
            told.carries = row.try_get("carries")?;
        }
        Ok(told)
    }

    /// Everything that follows from the rows was written, or nothing is.
    fn check(&self) -> Result<(), StoreError> {
        let number = |of: &[InstructionState]| {
            let count = self.states.iter().filter(|(_, state)| of.contains(state)).count();
            i64::try_from(count).unwrap_or(i64::MAX)
        };
        let rejected = number(&[InstructionState::Rejected]);
        let posted = number(&[InstructionState::Paid]) + rejected;
        let all = i64::try_from(self.states.len()).unwrap_or(i64::MAX);
        if (self.updated, self.postings, self.carries) == (all, posted, rejected) {
            return Ok(());
        }
        Err(StoreError::Broken {
            operation: RECORD,
            detail: format!(
                "{all} payouts were to be changed, {posted} posted, {rejected} carried; {} were changed, {} posted, {} \
                 carried: nothing is recorded",
                self.updated, self.postings, self.carries
            ),
        })
    }
}

/// Puts back the payouts that stand on the wire to a receiver under this claim and are not among `kept`, in an open
/// transaction that has entered the fence. Answers how many.
///
/// # Errors
/// Any [`StoreError`]; the caller rolls back.
pub(super) async fn put_back_payouts(
    connection: &mut PgConnection,
    claim: &Claim,
    origin: &str,
    kept: &[(i64, u32)],
) -> Result<Done<u64>, StoreError> {
    let put = sqlx::query(include_str!("sql/payouts_put_back.sql"))
        .bind(claim.election.as_str())
        .bind(claim.term.get())
        .bind(origin)
        .bind(kept.iter().map(|kept| kept.0).collect::<Vec<_>>())
        .bind(kept.iter().map(|kept| try_number(kept.1)).collect::<Vec<_>>())
        .execute(connection)
        .await
        .map_err(at(PUT_BACK))?;
    Ok(Done::Commit(put.rows_affected()))
}

/// The number of a try as the column holds it.
fn try_number(attempt: u32) -> i32 {
    i32::try_from(attempt).unwrap_or(i32::MAX)
}

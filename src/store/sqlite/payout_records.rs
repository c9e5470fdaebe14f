//! What came of payouts, with the postings that follow, and what it says about their receiver.
//!
//! Invariants:
//! - A try is recorded only while it is on the wire under this term (a look-up: while the outcome is still unknown) and is the
//!   one that is named, so that recording it twice records it once.
//! - A doubt, once there, stays, and nothing in doubt is reversed.
//! - Everything that follows from the rows is written, or nothing is: counted, and rolled back where it does not come out.

use serde::Serialize;
use sqlx::Row;
use sqlx::sqlite::{SqliteConnection, SqliteRow};

use super::charge::{bounded, wait_micros};
use super::columns::json_text;
use super::error::at;
use super::receivers::hear;
use super::tries;
use super::tx::Done;
use crate::domain::Claim;
use crate::domain::instruction::InstructionState;
use crate::store::{Heard, PayoutFate, PayoutRecord, PayoutRecords, PayoutsRecorded, StoreError};

const RECORD: &str = "record_payouts";

/// Records what came of payouts, in an open transaction that has entered the fence.
///
/// # Errors
/// Any [`StoreError`]; the caller rolls back.
pub(super) async fn record_payouts(
    connection: &mut SqliteConnection,
    claim: &Claim,
    records: &PayoutRecords,
) -> Result<Done<PayoutsRecorded>, StoreError> {
    let told = told(connection, claim, &records.records).await.map_err(at(RECORD))?;
    let rows: Vec<Written<'_>> = told.iter().map(Told::row).collect();
    let updated = sqlx::query(include_str!("sql/payouts_record.sql"))
        .bind(json_text(&rows).map_err(at(RECORD))?)
        .execute(&mut *connection)
        .await
        .map_err(at(RECORD))?
        .rows_affected();
    if updated != told.len() as u64 {
        let detail = format!("{} payouts were to be changed, {updated} were: nothing is recorded", told.len());
        return Err(StoreError::Broken { operation: RECORD, detail });
    }
    let tries: Vec<(i64, &str, Option<&str>)> =
        told.iter().map(|told| (told.instruction, told.outcome, told.error.as_deref())).collect();
    tries::end(connection, &tries).await.map_err(at(RECORD))?;
    for state in [InstructionState::Paid, InstructionState::Rejected] {
        let ended: Vec<i64> = told.iter().filter(|told| told.state == state).map(|told| told.instruction).collect();
        post(connection, RECORD, state, claim.term.get(), &ended).await?;
    }
    let heard = Heard::of_payouts(records, |place, _| told.iter().any(|told| told.place == place));
    let needs_resume = hear(connection, claim, &heard).await.map_err(at(RECORD))?;
    crate::point!("store.payouts.after_record");
    let states = told.iter().map(|told| (told.instruction, told.state)).collect();
    Ok(Done::Commit(PayoutsRecorded { states, needs_resume }))
}

/// Writes journals, postings and carries of payouts that have just become `state`, all of them or none.
pub(super) async fn post(
    connection: &mut SqliteConnection,
    operation: &'static str,
    state: InstructionState,
    term: i64,
    instructions: &[i64],
) -> Result<(), StoreError> {
    if instructions.is_empty() {
        return Ok(());
    }
    let given = json_text(instructions).map_err(at(operation))?;
    let all = instructions.len() as u64;
    let back = if state == InstructionState::Paid { 0 } else { all };
    let journals = sqlx::query(include_str!("sql/payouts_journals.sql"))
        .bind(state.as_str())
        .bind(term)
        .bind(given.as_str())
        .execute(&mut *connection)
        .await
        .map_err(at(operation))?
        .rows_affected();
    let mut written = [journals, 0, 0];
    for (place, statement) in
        [include_str!("sql/payouts_postings.sql"), include_str!("sql/payouts_carries.sql")].into_iter().enumerate()
    {
        written[place + 1] = sqlx::query(statement)
            .bind(state.as_str())
            .bind(given.as_str())
            .execute(&mut *connection)
            .await
            .map_err(at(operation))?
            .rows_affected();
    }
    if written == [all, all, back] {
        return Ok(());
    }
    let [journals, postings, carries] = written;
    let detail = format!(
        "{all} payouts became {}: {all} journals, {all} postings and {back} carries were to be written, {journals}, \
         {postings} and {carries} were: nothing is changed",
        state.as_str()
    );
    Err(StoreError::Broken { operation, detail })
}

/// One payout that is recorded, with what it becomes.
struct Told {
    instruction: i64,
    /// Its place among the records.
    place: usize,
    state: InstructionState,
    reason: Option<&'static str>,
    doubt: bool,
    never_sent: bool,
    /// Of the try.
    outcome: &'static str,
    error: Option<String>,
    again: Option<i64>,
    reference: Option<String>,
}

/// As the statement takes it apart.
#[derive(Serialize)]
struct Written<'a>(i64, &'static str, Option<&'static str>, bool, bool, Option<&'a str>, Option<i64>, Option<&'a str>);

impl Told {
    /// What a try makes of a payout, given whether an earlier one is in doubt.
    fn of(instruction: i64, place: usize, in_doubt: bool, fate: &PayoutFate) -> Self {
        use InstructionState::{Held, Paid, Pending, Rejected, Unknown};
        let as_before = if in_doubt { Unknown } else { Pending };
        let (state, reason, doubt, error, again, reference) = match fate {
            PayoutFate::Paid { reference } => (Paid, None, in_doubt, None, None, reference.as_deref()),
            PayoutFate::Mismatch { error } => (Held, Some("mismatch"), true, Some(error.as_str()), None, None),
            PayoutFate::Rejected { error } if in_doubt => {
                (Held, Some("unknown"), true, Some(error.as_str()), None, None)
            }
            PayoutFate::Rejected { error } => (Rejected, None, false, Some(error.as_str()), None, None),
            PayoutFate::Unknown { error, again_in: None } => {
                (Held, Some("unknown"), true, Some(error.as_str()), None, None)
            }
            PayoutFate::Unknown { error, again_in } => (Unknown, None, true, Some(error.as_str()), *again_in, None),
            PayoutFate::Back { left: _, error, again_in } => {
                (as_before, None, in_doubt, error.as_deref(), *again_in, None)
            }
        };
        Self {
            instruction,
            place,
            state,
            reason,
            doubt,
            never_sent: matches!(fate, PayoutFate::Back { left: false, .. }) && !doubt,
            outcome: fate.outcome(),
            error: error.map(bounded),
            again: again.map(wait_micros),
            reference: reference.map(bounded),
        }
    }

    fn row(&self) -> Written<'_> {
        Written(
            self.instruction,
            self.state.as_str(),
            self.reason,
            self.doubt,
            self.never_sent,
            self.error.as_deref(),
            self.again,
            self.reference.as_deref(),
        )
    }
}

/// Those of the records whose try is the one that is on the wire, in the order of ids.
async fn told(
    connection: &mut SqliteConnection,
    claim: &Claim,
    records: &[PayoutRecord],
) -> Result<Vec<Told>, sqlx::Error> {
    let tries: Vec<(i64, u32, bool)> =
        records.iter().map(|record| (record.instruction, record.attempt, record.asked)).collect();
    let rows = sqlx::query(include_str!("sql/payouts_on_the_wire.sql"))
        .bind(claim.election.as_str())
        .bind(claim.term.get())
        .bind(json_text(&tries)?)
        .fetch_all(connection)
        .await?;
    let read = |row: &SqliteRow| -> Result<Told, sqlx::Error> {
        let place: i64 = row.try_get("place")?;
        let place = usize::try_from(place).map_err(|error| sqlx::Error::Decode(error.into()))?;
        let record = records.get(place).ok_or_else(|| sqlx::Error::Decode("a try that nobody named".into()))?;
        Ok(Told::of(row.try_get("id")?, place, row.try_get("in_doubt")?, &record.fate))
    };
    rows.iter().map(read).collect()
}

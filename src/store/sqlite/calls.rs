//! Calls of outside handlers: taken (written down as on the wire), then recorded.
//!
//! Invariants:
//! - A call is committed as `sending` under this term before its first byte; key and bytes are those of the first time.
//! - A try is recorded only while it is on the wire under this term and is the one that is named. The number of a try only
//!   grows, also where no byte left, so that a late record can never be taken for a newer try's.
//! - A doubt is for good. A try that surely failed does not clear an earlier one's.

use sqlx::Row;
use sqlx::sqlite::{SqliteConnection, SqliteRow};
use uuid::Uuid;

use super::charge::{batch, bounded, wait_micros};
use super::columns::{date_text, json_text, small_count};
use super::error::at;
use super::tries;
use super::tx::Done;
use crate::domain::Claim;
use crate::domain::outside::call_body;
use crate::domain::payout::{KeyParts, idempotency_key};
use crate::store::planned::age;
use crate::store::{Call, CallFate, CallRecord, OpenRun, StoreError};

const TAKE: &str = "take_calls";
const RECORD: &str = "record_calls";
const PUT_BACK: &str = "put_back";

/// A unit that is due for a call.
struct Due {
    unit: i64,
    key: String,
    attempts: u32,
    generation: u32,
    payload: Option<String>,
}

impl Due {
    fn read(row: &SqliteRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            unit: row.try_get("id")?,
            key: row.try_get("key")?,
            attempts: small_count(row, "attempts")?,
            generation: small_count(row, "generation")?,
            payload: row.try_get("payload")?,
        })
    }
}

/// Takes up to `limit` units in an open transaction that has entered the fence.
///
/// # Errors
/// Any [`StoreError`]; the caller rolls back.
pub(super) async fn take_calls(
    connection: &mut SqliteConnection,
    claim: &Claim,
    deployment: Uuid,
    run: &OpenRun,
    limit: u32,
) -> Result<Done<Vec<Call>>, StoreError> {
    let rows = sqlx::query(include_str!("sql/calls_pick.sql"))
        .bind(run.id)
        .bind(claim.election.as_str())
        .bind(i64::from(limit))
        .fetch_all(&mut *connection)
        .await
        .map_err(at(TAKE))?;
    let mut due = rows.iter().map(Due::read).collect::<Result<Vec<_>, _>>().map_err(at(TAKE))?;
    due.sort_unstable_by_key(|due| due.unit);
    if due.is_empty() {
        return Ok(Done::RollBack(Vec::new()));
    }
    let sent = send(connection, claim, deployment, run, &due).await.map_err(at(TAKE))?;
    crate::point!("store.calls.after_take");
    let mut calls = Vec::with_capacity(sent.len());
    for row in &sent {
        calls.extend(call(row, &due).map_err(at(TAKE))?);
    }
    calls.sort_unstable_by_key(|call| call.unit);
    Ok(Done::Commit(calls))
}

/// Takes the instructions of units up again, or writes them. Answers those that are on the wire now.
async fn send(
    connection: &mut SqliteConnection,
    claim: &Claim,
    deployment: Uuid,
    run: &OpenRun,
    due: &[Due],
) -> Result<Vec<SqliteRow>, sqlx::Error> {
    let given: Vec<(i64, u32, String, String)> = due
        .iter()
        .map(|unit| {
            let key = idempotency_key(&KeyParts {
                deployment_id: deployment,
                job: &run.definition.name,
                kind: run.kind,
                tick: run.tick,
                request_id: run.request_id,
                unit_key: &unit.key,
                generation: unit.generation,
            });
            let body = call_body(&key, &unit.key, unit.payload.as_deref());
            let body = body.map_err(|error| sqlx::Error::Decode(Box::new(error)))?;
            Ok((unit.unit, unit.generation, key, String::from_utf8_lossy(&body).into_owned()))
        })
        .collect::<Result<_, sqlx::Error>>()?;
    let given = json_text(&given)?;
    let mut sent = Vec::with_capacity(due.len());
    for statement in [include_str!("sql/calls_again.sql"), include_str!("sql/calls_send.sql")] {
        let rows = sqlx::query(statement)
            .bind(run.id)
            .bind(claim.election.as_str())
            .bind(claim.term.get())
            .bind(given.as_str())
            .bind(run.job_id)
            .bind(date_text(run.value_date))
            .bind(run.definition.handler.is_idempotent())
            .fetch_all(&mut *connection)
            .await?;
        sent.extend(rows);
    }
    let begun: Vec<(i64, u32, bool)> = sent
        .iter()
        .map(|row| Ok((row.try_get("id")?, small_count(row, "attempts")?, false)))
        .collect::<Result<_, sqlx::Error>>()?;
    tries::begin(connection, claim, &begun).await?;
    Ok(sent)
}

/// Reads one call; `due` is in the order of ids.
fn call(row: &SqliteRow, due: &[Due]) -> Result<Option<Call>, sqlx::Error> {
    let unit: i64 = row.try_get("unit_id")?;
    let Ok(place) = due.binary_search_by_key(&unit, |due| due.unit) else { return Ok(None) };
    Ok(Some(Call {
        instruction: row.try_get("id")?,
        unit,
        key: due[place].key.clone(),
        idempotency_key: row.try_get("idempotency_key")?,
        body: row.try_get("body")?,
        attempt: small_count(row, "attempts")?,
        charged: due[place].attempts,
        in_doubt: row.try_get("in_doubt")?,
        age: age(row.try_get("age")?),
    }))
}

/// Records what came of calls, in an open transaction that has entered the fence. Answers how many were recorded.
///
/// # Errors
/// Any [`StoreError`]; the caller rolls back.
pub(super) async fn record_calls(
    connection: &mut SqliteConnection,
    claim: &Claim,
    run: i64,
    records: &[CallRecord],
) -> Result<Done<u64>, StoreError> {
    match told(connection, claim, run, records).await.map_err(at(RECORD))? {
        told if told.is_empty() => Ok(Done::RollBack(0)),
        told => write(connection, claim, run, &told).await.map(Done::Commit),
    }
}

/// One call that is recorded: instruction, unit, fate, error, wait in microseconds.
type Told = (i64, i64, &'static str, Option<String>, Option<i64>);

/// Those of the records whose try is on the wire under this term and is the one that is named.
async fn told(
    connection: &mut SqliteConnection,
    claim: &Claim,
    run: i64,
    records: &[CallRecord],
) -> Result<Vec<Told>, sqlx::Error> {
    let tries: Vec<(i64, u32)> = records.iter().map(|record| (record.instruction, record.attempt)).collect();
    let rows = sqlx::query(include_str!("sql/calls_on_the_wire.sql"))
        .bind(run)
        .bind(claim.election.as_str())
        .bind(claim.term.get())
        .bind(json_text(&tries)?)
        .fetch_all(connection)
        .await?;
    let mut told = Vec::with_capacity(rows.len());
    for row in &rows {
        let (place, instruction, unit): (i64, i64, i64) =
            (row.try_get("place")?, row.try_get("id")?, row.try_get("unit_id")?);
        let Some(record) = usize::try_from(place).ok().and_then(|place| records.get(place)) else { continue };
        let (fate, error, again) = match &record.fate {
            CallFate::Done => ("done", None, None),
            CallFate::NotSent => ("not_sent", None, None),
            CallFate::Stopped { error, again_in, left: false } => {
                ("not_sent", Some(bounded(error)), Some(wait_micros(*again_in)))
            }
            CallFate::Stopped { error, again_in, left: true } | CallFate::PutOff { error, again_in } => {
                ("put_off", Some(bounded(error)), Some(wait_micros(*again_in)))
            }
            CallFate::Failed { error, again_in } => ("failed", Some(bounded(error)), again_in.map(wait_micros)),
            CallFate::Unknown { error, again_in } => ("unknown", Some(bounded(error)), again_in.map(wait_micros)),
        };
        told.push((instruction, unit, fate, error, again));
    }
    Ok(told)
}

async fn write(connection: &mut SqliteConnection, claim: &Claim, run: i64, told: &[Told]) -> Result<u64, StoreError> {
    let given = json_text(told).map_err(at(RECORD))?;
    let recorded = sqlx::query(include_str!("sql/calls_record.sql"))
        .bind(given.as_str())
        .execute(&mut *connection)
        .await
        .map_err(at(RECORD))?
        .rows_affected();
    let outcome = |fate| if fate == "put_off" { "undone" } else { fate };
    let ended: Vec<(i64, &str, Option<&str>)> =
        told.iter().map(|told| (told.0, outcome(told.2), told.3.as_deref())).collect();
    tries::end(connection, &ended).await.map_err(at(RECORD))?;
    let count = |wanted: fn(&Told) -> bool| told.iter().filter(|told| wanted(told)).count();
    let settled = count(|told| told.2 == "done");
    let aside = count(|told| matches!(told.2, "failed" | "unknown") && told.4.is_none());
    let batch = if settled + aside > 0 {
        let narrow = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let units = narrow(settled + aside);
        Some(batch(connection, claim, run, units, narrow(settled), narrow(aside)).await.map_err(at(RECORD))?)
    } else {
        None
    };
    let units = sqlx::query(include_str!("sql/calls_units.sql"))
        .bind(given.as_str())
        .bind(claim.term.get())
        .bind(batch)
        .execute(connection)
        .await
        .map_err(at(RECORD))?
        .rows_affected();
    let expected = count(|told| !matches!(told.2, "not_sent" | "put_off"));
    if recorded != told.len() as u64 || units != expected as u64 {
        return Err(StoreError::Broken {
            operation: RECORD,
            detail: format!(
                "{} calls and {expected} units were to be changed, {recorded} and {units} were: nothing is recorded",
                told.len()
            ),
        });
    }
    Ok(recorded)
}

/// Puts calls back of which no byte left: those of the run that are on the wire under this claim, but for the tries that are
/// kept. Answers how many.
///
/// # Errors
/// Any [`StoreError`]; the caller rolls back.
pub(super) async fn put_back(
    connection: &mut SqliteConnection,
    claim: &Claim,
    run: i64,
    kept: &[(i64, u32)],
) -> Result<Done<u64>, StoreError> {
    let put_back = sqlx::query(include_str!("sql/calls_put_back.sql"))
        .bind(run)
        .bind(claim.election.as_str())
        .bind(claim.term.get())
        .bind(json_text(kept).map_err(at(PUT_BACK))?)
        .fetch_all(&mut *connection)
        .await
        .map_err(at(PUT_BACK))?;
    tries::not_sent(connection, &put_back).await.map_err(at(PUT_BACK))?;
    Ok(Done::Commit(put_back.len() as u64))
}

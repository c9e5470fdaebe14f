//! Calls of outside handlers: taken (written down as on the wire), then recorded, or put back.
//!
//! Invariants:
//! - A call is committed as `sending` under this term before its first byte; key and bytes are those of the first time.
//! - A try is recorded only while it is on the wire under this term and is the one that is named. The number of a try only
//!   grows, also where no byte left, so that a late record can never be taken for a newer try's.
//! - A take whose COMMIT was not answered may have left calls on the wire that nobody has in hand; they are put back by the
//!   taker, who alone knows which it has.
//! - A doubt is for good. A try that surely failed does not clear an earlier one's.

use sqlx::Row;
use sqlx::postgres::{PgConnection, PgRow};
use uuid::Uuid;

use super::charge::{bounded, millis};
use super::error::at;
use super::tx::Done;
use crate::domain::Claim;
use crate::domain::outside::call_body;
use crate::domain::payout::{KeyParts, idempotency_key};
use crate::store::planned::age;
use crate::store::{Call, CallFate, CallRecord, OpenRun, StoreError};

const TAKE: &str = "take_calls";
const RECORD: &str = "record_calls";
const PUT_BACK: &str = "put_back";

/// A unit that is due for a call, locked.
struct Due {
    unit: i64,
    key: String,
    attempts: i32,
    generation: i32,
    payload: Option<String>,
}

impl Due {
    fn read(row: &PgRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            unit: row.try_get("id")?,
            key: row.try_get("key")?,
            attempts: row.try_get("attempts")?,
            generation: row.try_get("generation")?,
            payload: row.try_get("payload")?,
        })
    }
}

/// Takes up to `limit` units in an open transaction that has entered the fence.
///
/// # Errors
/// Any [`StoreError`]; the caller rolls back.
pub(super) async fn take_calls(
    connection: &mut PgConnection,
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
    let due = rows.iter().map(Due::read).collect::<Result<Vec<_>, _>>().map_err(at(TAKE))?;
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

/// Writes the instructions of locked units, or takes them up again. Answers those that are on the wire now.
async fn send(
    connection: &mut PgConnection,
    claim: &Claim,
    deployment: Uuid,
    run: &OpenRun,
    due: &[Due],
) -> Result<Vec<PgRow>, sqlx::Error> {
    let mut keys = Vec::with_capacity(due.len());
    let mut bodies = Vec::with_capacity(due.len());
    for unit in due {
        let key = idempotency_key(&KeyParts {
            deployment_id: deployment,
            job: &run.definition.name,
            kind: run.kind,
            tick: run.tick,
            request_id: run.request_id,
            unit_key: &unit.key,
            generation: unit.generation.unsigned_abs(),
        });
        let body = call_body(&key, &unit.key, unit.payload.as_deref());
        bodies.push(body.map_err(|error| sqlx::Error::Decode(Box::new(error)))?);
        keys.push(key);
    }
    sqlx::query(include_str!("sql/calls_send.sql"))
        .bind(run.id)
        .bind(claim.election.as_str())
        .bind(claim.term.get())
        .bind(run.job_id)
        .bind(run.value_date)
        .bind(run.definition.handler.is_idempotent())
        .bind(due.iter().map(|unit| unit.unit).collect::<Vec<_>>())
        .bind(due.iter().map(|unit| unit.generation).collect::<Vec<_>>())
        .bind(keys)
        .bind(bodies)
        .fetch_all(connection)
        .await
}

/// Reads one call; `due` is in the order of ids.
fn call(row: &PgRow, due: &[Due]) -> Result<Option<Call>, sqlx::Error> {
    let unit: i64 = row.try_get("unit_id")?;
    let Ok(place) = due.binary_search_by_key(&unit, |due| due.unit) else { return Ok(None) };
    let attempt: i32 = row.try_get("attempts")?;
    Ok(Some(Call {
        instruction: row.try_get("id")?,
        unit,
        key: due[place].key.clone(),
        idempotency_key: row.try_get("idempotency_key")?,
        attempt: attempt.unsigned_abs(),
        charged: due[place].attempts.unsigned_abs(),
        in_doubt: row.try_get("in_doubt")?,
        age: age(row.try_get("age")?),
        body: row.try_get("body")?,
    }))
}

/// Records what came of calls, in an open transaction that has entered the fence. Answers how many were recorded.
///
/// # Errors
/// Any [`StoreError`]; the caller rolls back.
pub(super) async fn record_calls(
    connection: &mut PgConnection,
    claim: &Claim,
    run: i64,
    records: &[CallRecord],
) -> Result<Done<u64>, StoreError> {
    let fates: Vec<(&'static str, Option<String>, Option<i64>)> = records
        .iter()
        .map(|record| match &record.fate {
            CallFate::Done => ("done", None, None),
            CallFate::NotSent => ("not_sent", None, None),
            CallFate::Stopped { error, again_in, left: false } => {
                ("not_sent", Some(bounded(error)), Some(millis(*again_in)))
            }
            CallFate::Stopped { error, again_in, left: true } | CallFate::PutOff { error, again_in } => {
                ("put_off", Some(bounded(error)), Some(millis(*again_in)))
            }
            CallFate::Failed { error, again_in } => ("failed", Some(bounded(error)), again_in.map(millis)),
            CallFate::Unknown { error, again_in } => ("unknown", Some(bounded(error)), again_in.map(millis)),
        })
        .collect();
    let row = sqlx::query(include_str!("sql/calls_record.sql"))
        .bind(run)
        .bind(claim.election.as_str())
        .bind(claim.term.get())
        .bind(records.iter().map(|record| record.instruction).collect::<Vec<_>>())
        .bind(records.iter().map(|record| try_number(record.attempt)).collect::<Vec<_>>())
        .bind(fates.iter().map(|fate| fate.0).collect::<Vec<_>>())
        .bind(fates.iter().map(|fate| fate.1.as_deref()).collect::<Vec<_>>())
        .bind(fates.iter().map(|fate| fate.2).collect::<Vec<_>>())
        .fetch_one(connection)
        .await
        .map_err(at(RECORD))?;
    let (recorded, expected, units) = counts(&row).map_err(at(RECORD))?;
    if expected != units {
        return Err(StoreError::Broken {
            operation: RECORD,
            detail: format!("{expected} units were to be changed, {units} were: nothing is recorded"),
        });
    }
    Ok(Done::Commit(recorded.unsigned_abs()))
}

/// Puts back the calls that stand on the wire under this claim and are not among `kept`, in an open transaction that has
/// entered the fence. Answers how many.
///
/// # Errors
/// Any [`StoreError`]; the caller rolls back.
pub(super) async fn put_back(
    connection: &mut PgConnection,
    claim: &Claim,
    run: i64,
    kept: &[(i64, u32)],
) -> Result<Done<u64>, StoreError> {
    let put = sqlx::query(include_str!("sql/calls_put_back.sql"))
        .bind(run)
        .bind(claim.election.as_str())
        .bind(claim.term.get())
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

fn counts(row: &PgRow) -> Result<(i64, i64, i64), sqlx::Error> {
    Ok((row.try_get("recorded")?, row.try_get("expected")?, row.try_get("units")?))
}

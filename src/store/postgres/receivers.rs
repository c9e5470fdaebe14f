//! Receivers that stop, durably: whether one may be sent to, and what its answers say about it.

use std::time::Duration;

use sqlx::Row;
use sqlx::postgres::PgConnection;

use super::charge::{bounded, millis};
use super::error::at;
use super::tx::Done;
use crate::domain::Claim;
use crate::store::{Heard, ReceiverAsk, ReceiverWay, StoreError, TOO_MANY_REFUSALS};

const WAY: &str = "receiver_way";
const HEARD: &str = "heard";

/// Whether a receiver may be sent to, in an open transaction that has entered the fence. Its row is locked where there is one. A
/// try at one that is stopped is noted only by [`tried`].
pub(super) async fn way(
    connection: &mut PgConnection,
    origin: &str,
    probe_now: bool,
) -> Result<ReceiverWay, sqlx::Error> {
    let row = sqlx::query(include_str!("sql/payouts_receiver.sql")).bind(origin).fetch_optional(connection).await?;
    let Some(row) = row else { return Ok(ReceiverWay::Open) };
    if !row.try_get::<bool, _>("stopped")? {
        return Ok(ReceiverWay::Open);
    }
    let reason: String = row.try_get::<Option<String>, _>("reason")?.unwrap_or_default();
    if row.try_get("needs_resume")? {
        return Ok(ReceiverWay::Closed { reason, next_in: None });
    }
    let wait = row.try_get::<Option<i64>, _>("probe_in_ms")?.and_then(|wait| u64::try_from(wait).ok()).unwrap_or(0);
    Ok(if wait == 0 || probe_now {
        ReceiverWay::Probe(reason)
    } else {
        ReceiverWay::Closed { reason, next_in: Some(Duration::from_millis(wait)) }
    })
}

/// One is tried now at a receiver that is stopped; the next one after a longer wait.
pub(super) async fn tried(
    connection: &mut PgConnection,
    origin: &str,
    (first, longest): (Duration, Duration),
) -> Result<(), sqlx::Error> {
    sqlx::query(include_str!("sql/payouts_probe.sql"))
        .bind(origin)
        .bind(millis(first))
        .bind(millis(longest))
        .execute(connection)
        .await
        .map(|_| ())
}

/// Whether calls may go to a receiver, in an open transaction that has entered the fence.
///
/// # Errors
/// Any [`StoreError`]; the caller rolls back.
pub(super) async fn receiver_way(
    connection: &mut PgConnection,
    ask: &ReceiverAsk,
) -> Result<Done<ReceiverWay>, StoreError> {
    let found = way(connection, &ask.origin, ask.probe_now).await.map_err(at(WAY))?;
    if let ReceiverWay::Probe(_) = found
        && ask.tries
    {
        tried(connection, &ask.origin, ask.probe_waits).await.map_err(at(WAY))?;
        return Ok(Done::Commit(found));
    }
    Ok(Done::RollBack(found))
}

/// Notes what answers say about a receiver, in an open transaction that has entered the fence.
///
/// # Errors
/// Any [`StoreError`]; the caller rolls back.
pub(super) async fn heard(
    connection: &mut PgConnection,
    claim: &Claim,
    heard: &Heard,
) -> Result<Done<bool>, StoreError> {
    hear(connection, claim, heard).await.map(Done::Commit).map_err(at(HEARD))
}

/// The same, as part of a transaction. Answers whether it is stopped now until an operator resumes it.
pub(super) async fn hear(connection: &mut PgConnection, claim: &Claim, heard: &Heard) -> Result<bool, sqlx::Error> {
    let refused = i32::try_from(heard.refused).unwrap_or(i32::MAX);
    let mut in_a_row = 0;
    if heard.did || refused > 0 {
        let found: Option<i32> = sqlx::query_scalar(include_str!("sql/receiver_answers.sql"))
            .bind(heard.origin.as_str())
            .bind(heard.did)
            .bind(refused)
            .bind(claim.term.get())
            .fetch_optional(&mut *connection)
            .await?;
        in_a_row = found.unwrap_or(0);
    }
    let too_many = refused > 0 && in_a_row.unsigned_abs() >= heard.max_refusals;
    let stop = match &heard.stop {
        _ if too_many => Some((TOO_MANY_REFUSALS, format!("{in_a_row} refusals in a row"))),
        Some((reason, detail)) => Some((*reason, bounded(detail))),
        None => None,
    };
    if let Some((reason, detail)) = stop {
        sqlx::query(include_str!("sql/receiver_stop.sql"))
            .bind(heard.origin.as_str())
            .bind(reason)
            .bind(detail)
            .bind(claim.term.get())
            .bind(millis(heard.probe_after))
            .bind(in_a_row)
            .bind(too_many)
            .execute(connection)
            .await?;
    }
    Ok(too_many)
}

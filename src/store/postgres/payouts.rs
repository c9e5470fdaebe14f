//! Payouts on their way: which may leave, and their take (written down as on the wire). What came of them is
//! [`super::payout_records`].
//!
//! Invariants:
//! - A payout is committed as `sending` under this term before its first byte; key and bytes are those of the first time.
//! - What may not leave any more is held in the same transaction that finds it.
//! - The order of locks in a take: the receiver's row, then instructions that nobody holds (they are passed over, never
//!   waited for).

use std::collections::BTreeMap;
use std::time::Duration;

use sqlx::Row;
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::types::Json;

use super::charge::millis;
use super::error::at;
use super::receivers::{tried, way};
use super::tx::Done;
use crate::domain::Claim;
use crate::store::payouts::LEFT_IN_STORE;
use crate::store::readable::{Said, readable};
use crate::store::{Errand, Payout, PayoutJob, PayoutTake, PayoutsTaken, ReceiverWay, StoreError};

const JOBS: &str = "payout_jobs";
const TAKE: &str = "take_payouts";

/// The most that one take asks for.
const MOST_TAKEN: u32 = 1_000;

/// Jobs with payouts that may have to be sent.
pub(super) async fn payout_jobs(
    connection: &mut PgConnection,
    claim: &Claim,
    said: &Said,
) -> Result<Done<Vec<PayoutJob>>, StoreError> {
    let rows = sqlx::query(include_str!("sql/payouts_jobs.sql"))
        .bind(claim.election.as_str())
        .fetch_all(connection)
        .await
        .map_err(at(JOBS))?;
    let read = |row: &PgRow| -> Result<PayoutJob, sqlx::Error> {
        let definition: Json<_> = row.try_get("definition")?;
        Ok(PayoutJob { id: row.try_get("id")?, definition: definition.0 })
    };
    // One that cannot be read is named in the log, and its payouts wait for a release that can.
    let (jobs, _unreadable) = readable(&rows, read, said, "job", |row| row.try_get("name").ok());
    Ok(Done::RollBack(jobs))
}

/// Takes payouts in an open transaction that has entered the fence.
///
/// # Errors
/// Any [`StoreError`]; the caller rolls back.
pub(super) async fn take_payouts(
    connection: &mut PgConnection,
    claim: &Claim,
    take: &PayoutTake,
) -> Result<Done<PayoutsTaken>, StoreError> {
    taken(connection, claim, take).await.map_err(at(TAKE))
}

async fn taken(
    connection: &mut PgConnection,
    claim: &Claim,
    take: &PayoutTake,
) -> Result<Done<PayoutsTaken>, sqlx::Error> {
    let (limit, stopped) = match way(connection, &take.origin, take.probe_now).await? {
        ReceiverWay::Open => (take.limit.clamp(1, MOST_TAKEN), None),
        ReceiverWay::Probe(reason) => (1, Some(reason)),
        ReceiverWay::Closed { reason, next_in } => {
            return Ok(Done::RollBack(PayoutsTaken { stopped: Some(reason), next_in, ..PayoutsTaken::default() }));
        }
    };
    let columns = Columns::of(take);
    let picked = pick(connection, claim, take, &columns, limit).await?;
    let looked_at = picked.send.len() + picked.holds.id.len();
    let full = looked_at >= usize::try_from(limit).unwrap_or(usize::MAX);
    let next_in = if full { Some(Duration::ZERO) } else { next_in(connection, claim, &columns).await? };
    if looked_at == 0 {
        return Ok(Done::RollBack(PayoutsTaken { stopped, next_in, ..PayoutsTaken::default() }));
    }
    let held = hold(connection, claim, &picked.holds).await?;
    let payouts = send(connection, claim, take, &columns, &picked).await?;
    if stopped.is_some() && !payouts.is_empty() {
        tried(connection, &take.origin, take.probe_waits).await?;
    }
    crate::point!("store.payouts.after_take");
    Ok(Done::Commit(PayoutsTaken { payouts, held, stopped, next_in, full }))
}

/// The rules of the jobs, as bound to the statements.
struct Columns {
    job: Vec<i64>,
    idempotent: Vec<bool>,
    looks_up: Vec<bool>,
    valid_ms: Vec<i64>,
    timeout_ms: Vec<i64>,
    maxima: Vec<Json<BTreeMap<String, i64>>>,
    url: Vec<String>,
}

impl Columns {
    fn of(take: &PayoutTake) -> Self {
        let jobs = || take.jobs.iter();
        Self {
            job: jobs().map(|terms| terms.job).collect(),
            idempotent: jobs().map(|terms| terms.idempotent).collect(),
            looks_up: jobs().map(|terms| terms.looks_up).collect(),
            valid_ms: jobs().map(|terms| millis(terms.key_valid_for)).collect(),
            timeout_ms: jobs().map(|terms| millis(terms.timeout)).collect(),
            maxima: jobs()
                .map(|terms| Json(terms.maximum.iter().map(|(c, most)| (c.code().to_owned(), *most)).collect()))
                .collect(),
            url: jobs().map(|terms| terms.url.clone()).collect(),
        }
    }
}

/// Payouts that are locked, by what is to be done.
#[derive(Default)]
struct Picked {
    /// With whether an earlier try left.
    send: BTreeMap<i64, (Errand, bool)>,
    holds: Holds,
}

impl Picked {
    fn leaves(&mut self, id: i64, errand: Errand, left_before: bool) {
        self.send.insert(id, (errand, left_before));
    }
}

#[derive(Default)]
struct Holds {
    id: Vec<i64>,
    reason: Vec<&'static str>,
    error: Vec<Option<&'static str>>,
}

impl Holds {
    fn push(&mut self, id: i64, reason: &'static str, error: Option<&'static str>) {
        self.id.push(id);
        self.reason.push(reason);
        self.error.push(error);
    }
}

async fn pick(
    connection: &mut PgConnection,
    claim: &Claim,
    take: &PayoutTake,
    columns: &Columns,
    limit: u32,
) -> Result<Picked, sqlx::Error> {
    let rows = sqlx::query(crate::sql!("sql/payouts_pick.sql"))
        .bind(claim.election.as_str())
        .bind(take.origin.as_str())
        .bind(i64::from(limit))
        .bind(&columns.job)
        .bind(&columns.idempotent)
        .bind(&columns.looks_up)
        .bind(&columns.valid_ms)
        .bind(&columns.timeout_ms)
        .bind(&columns.maxima)
        .bind(&columns.url)
        .fetch_all(connection)
        .await?;
    let mut picked = Picked::default();
    for row in &rows {
        let id: i64 = row.try_get("id")?;
        let left_before = row.try_get("left_before")?;
        match row.try_get("verdict")? {
            "send" => picked.leaves(id, Errand::Send, left_before),
            "ask_then_send" => picked.leaves(id, Errand::AskThenSend, left_before),
            "ask" => picked.leaves(id, Errand::Ask { last: false }, left_before),
            "ask_last" => picked.leaves(id, Errand::Ask { last: true }, left_before),
            "merchant" => picked.holds.push(id, "merchant", None),
            "over_limit" => picked.holds.push(id, "over_limit", None),
            "left_in_store" => picked.holds.push(id, "approval", Some(LEFT_IN_STORE)),
            "moved" => picked.holds.push(id, "unknown", Some("in doubt at another receiver than the job's now")),
            "forgotten" => {
                picked.holds.push(id, "unknown", Some("put off until the receiver may have forgotten its key"));
            }
            "expired" => {
                picked.holds.push(id, "unknown", Some("in doubt, and its key may be forgotten by the receiver"));
            }
            "unknown" => picked.holds.push(id, "unknown", None),
            other => return Err(sqlx::Error::Decode(format!("an unknown verdict {other:?} on a payout").into())),
        }
    }
    Ok(picked)
}

async fn hold(connection: &mut PgConnection, claim: &Claim, holds: &Holds) -> Result<u64, sqlx::Error> {
    if holds.id.is_empty() {
        return Ok(0);
    }
    let held = sqlx::query(include_str!("sql/payouts_hold.sql"))
        .bind(claim.election.as_str())
        .bind(&holds.id)
        .bind(&holds.reason)
        .bind(&holds.error)
        .execute(connection)
        .await?;
    Ok(held.rows_affected())
}

async fn send(
    connection: &mut PgConnection,
    claim: &Claim,
    take: &PayoutTake,
    columns: &Columns,
    picked: &Picked,
) -> Result<Vec<Payout>, sqlx::Error> {
    if picked.send.is_empty() {
        return Ok(Vec::new());
    }
    let only_asked = |(errand, _): &(Errand, bool)| match errand {
        Errand::Ask { .. } => true,
        Errand::Send | Errand::AskThenSend => false,
    };
    let rows = sqlx::query(include_str!("sql/payouts_send.sql"))
        .bind(claim.election.as_str())
        .bind(claim.term.get())
        .bind(take.origin.as_str())
        .bind(picked.send.keys().copied().collect::<Vec<_>>())
        .bind(picked.send.values().map(only_asked).collect::<Vec<_>>())
        .bind(&columns.job)
        .bind(&columns.idempotent)
        .bind(&columns.looks_up)
        .bind(&columns.valid_ms)
        .bind(&columns.timeout_ms)
        .bind(&columns.url)
        .fetch_all(connection)
        .await?;
    let mut payouts = rows.iter().map(|row| payout(row, picked)).collect::<Result<Vec<_>, _>>()?;
    payouts.sort_unstable_by_key(|payout| payout.instruction);
    Ok(payouts)
}

fn payout(row: &PgRow, picked: &Picked) -> Result<Payout, sqlx::Error> {
    let instruction: i64 = row.try_get("id")?;
    let attempt: i32 = row.try_get("attempts")?;
    let leaves_within: i64 = row.try_get("leaves_within_ms")?;
    let not_picked = || sqlx::Error::Decode("a payout was taken that was not picked".into());
    let (errand, left_before) = picked.send.get(&instruction).copied().ok_or_else(not_picked)?;
    let key: String = row.try_get("idempotency_key")?;
    Ok(Payout {
        instruction,
        job: row.try_get("job_id")?,
        run: row.try_get("run_id")?,
        batch: row.try_get("batch_id")?,
        idempotency_key: crate::mutant!("payouts.key-made-anew", instead of key => key + &"-again".repeat(usize::from(attempt > 1))),
        body: row.try_get("body")?,
        attempt: attempt.unsigned_abs(),
        in_doubt: row.try_get("in_doubt")?,
        left_before,
        errand,
        leaves_within: Duration::from_millis(u64::try_from(leaves_within).unwrap_or(0)),
        taken_at: row.try_get("now")?,
    })
}

async fn next_in(
    connection: &mut PgConnection,
    claim: &Claim,
    columns: &Columns,
) -> Result<Option<Duration>, sqlx::Error> {
    let next: Option<i64> = sqlx::query_scalar(include_str!("sql/payouts_next.sql"))
        .bind(claim.election.as_str())
        .bind(&columns.job)
        .fetch_one(connection)
        .await?;
    Ok(next.map(|wait| Duration::from_millis(u64::try_from(wait).unwrap_or(0))))
}

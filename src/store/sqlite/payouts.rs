//! Payouts on their way: taken (written down as on the wire), or put back. What came of them is in `payout_records`.
//!
//! Invariants:
//! - A payout is committed as `sending` under this term before its first byte; key and bytes are those of the first time.
//! - What may not leave any more is held in the same transaction that finds it.
//! - Nobody else writes until the transaction's end, so that what was picked is as it was when it is sent.

use std::collections::BTreeMap;
use std::time::Duration;

use sqlx::Row;
use sqlx::sqlite::{SqliteConnection, SqliteRow};

use super::charge::wait_micros;
use super::columns::{json, json_text, small_count, time};
use super::error::at;
use super::receivers::{tried, way};
use super::tries;
use super::tx::Done;
use crate::domain::Claim;
use crate::store::payouts::LEFT_IN_STORE;
use crate::store::readable::{Said, readable};
use crate::store::{Errand, Payout, PayoutJob, PayoutTake, PayoutTerms, PayoutsTaken, ReceiverWay, StoreError};

const JOBS: &str = "payout_jobs";
const TAKE: &str = "take_payouts";
const PUT_BACK: &str = "put_back_payouts";

/// The most that one take asks for.
const MOST_TAKEN: u32 = 1_000;

/// Jobs with payouts that may have to be sent.
pub(super) async fn payout_jobs(
    connection: &mut SqliteConnection,
    claim: &Claim,
    said: &Said,
) -> Result<Done<Vec<PayoutJob>>, StoreError> {
    let rows = sqlx::query(include_str!("sql/payouts_jobs.sql"))
        .bind(claim.election.as_str())
        .fetch_all(connection)
        .await
        .map_err(at(JOBS))?;
    let read = |row: &SqliteRow| -> Result<PayoutJob, sqlx::Error> {
        Ok(PayoutJob { id: row.try_get("id")?, definition: json(row, "definition")? })
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
    connection: &mut SqliteConnection,
    claim: &Claim,
    take: &PayoutTake,
) -> Result<Done<PayoutsTaken>, StoreError> {
    taken(connection, claim, take).await.map_err(at(TAKE))
}

async fn taken(
    connection: &mut SqliteConnection,
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
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let jobs = json_text(&take.jobs.iter().map(given).collect::<Vec<_>>())?;
    let picked = pick(connection, claim, take, limit).await?;
    let looked_at = picked.send.len() + picked.holds.len();
    let full = looked_at >= limit;
    let next_in = if full { Some(Duration::ZERO) } else { next_in(connection, claim, &jobs).await? };
    if looked_at == 0 {
        return Ok(Done::RollBack(PayoutsTaken { stopped, next_in, ..PayoutsTaken::default() }));
    }
    let held = hold(connection, claim, &picked.holds).await?;
    let payouts = send(connection, claim, take, &jobs, &picked.send).await?;
    if stopped.is_some() && !payouts.is_empty() {
        tried(connection, &take.origin, take.probe_waits).await?;
    }
    crate::point!("store.payouts.after_take");
    Ok(Done::Commit(PayoutsTaken { payouts, held, stopped, next_in, full }))
}

/// A wait in microseconds; none where it is over.
fn micros(wait: i64) -> Duration {
    Duration::from_micros(u64::try_from(wait).unwrap_or(0))
}

/// The rules of a job, as the statements take them apart.
fn given(terms: &PayoutTerms) -> (i64, bool, bool, i64, i64, &str) {
    let PayoutTerms { job, url, idempotent, looks_up, key_valid_for, timeout, maximum: _ } = terms;
    (*job, *idempotent, *looks_up, wait_micros(*key_valid_for), wait_micros(*timeout), url)
}

/// Payouts that are due, by what is to be done.
#[derive(Default)]
struct Picked {
    /// With whether an earlier try left.
    send: BTreeMap<i64, (Errand, bool)>,
    /// With the reason and, where there is something to say, an error.
    holds: Vec<(i64, &'static str, Option<&'static str>)>,
}

async fn pick(
    connection: &mut SqliteConnection,
    claim: &Claim,
    take: &PayoutTake,
    limit: usize,
) -> Result<Picked, sqlx::Error> {
    let mut picked = Picked::default();
    for terms in &take.jobs {
        let left = limit.saturating_sub(picked.send.len() + picked.holds.len());
        if left == 0 {
            break;
        }
        let maxima: BTreeMap<&str, i64> = terms.maximum.iter().map(|(c, most)| (c.code(), *most)).collect();
        let (job, idempotent, looks_up, valid, timeout, url) = given(terms);
        let rows = sqlx::query(include_str!("sql/payouts_pick.sql"))
            .bind(claim.election.as_str())
            .bind(take.origin.as_str())
            .bind(i64::try_from(left).unwrap_or(i64::MAX))
            .bind(job)
            .bind(idempotent)
            .bind(looks_up)
            .bind(valid)
            .bind(timeout)
            .bind(json_text(&maxima)?)
            .bind(url)
            .fetch_all(&mut *connection)
            .await?;
        for row in &rows {
            picked.add(row.try_get("id")?, row.try_get("verdict")?, row.try_get("left_before")?)?;
        }
    }
    Ok(picked)
}

impl Picked {
    fn leaves(&mut self, id: i64, errand: Errand, left_before: bool) {
        self.send.insert(id, (errand, left_before));
    }

    fn add(&mut self, id: i64, verdict: &str, left_before: bool) -> Result<(), sqlx::Error> {
        match verdict {
            "send" => self.leaves(id, Errand::Send, left_before),
            "ask_then_send" => self.leaves(id, Errand::AskThenSend, left_before),
            "ask" => self.leaves(id, Errand::Ask { last: false }, left_before),
            "ask_last" => self.leaves(id, Errand::Ask { last: true }, left_before),
            "merchant" => self.holds.push((id, "merchant", None)),
            "over_limit" => self.holds.push((id, "over_limit", None)),
            "left_in_store" => self.holds.push((id, "approval", Some(LEFT_IN_STORE))),
            "moved" => self.holds.push((id, "unknown", Some("in doubt at another receiver than the job's now"))),
            "forgotten" => {
                self.holds.push((id, "unknown", Some("put off until the receiver may have forgotten its key")));
            }
            "expired" => {
                self.holds.push((id, "unknown", Some("in doubt, and its key may be forgotten by the receiver")));
            }
            "unknown" => self.holds.push((id, "unknown", None)),
            other => return Err(sqlx::Error::Decode(format!("an unknown verdict {other:?} on a payout").into())),
        }
        Ok(())
    }
}

async fn hold(
    connection: &mut SqliteConnection,
    claim: &Claim,
    holds: &[(i64, &'static str, Option<&'static str>)],
) -> Result<u64, sqlx::Error> {
    if holds.is_empty() {
        return Ok(0);
    }
    let held = sqlx::query(include_str!("sql/payouts_hold.sql"))
        .bind(claim.election.as_str())
        .bind(json_text(holds)?)
        .execute(connection)
        .await?;
    Ok(held.rows_affected())
}

async fn send(
    connection: &mut SqliteConnection,
    claim: &Claim,
    take: &PayoutTake,
    jobs: &str,
    picked: &BTreeMap<i64, (Errand, bool)>,
) -> Result<Vec<Payout>, sqlx::Error> {
    if picked.is_empty() {
        return Ok(Vec::new());
    }
    let only_asked = |errand: &Errand| match errand {
        Errand::Ask { .. } => true,
        Errand::Send | Errand::AskThenSend => false,
    };
    let errands: Vec<(i64, bool)> = picked.iter().map(|(id, (errand, _))| (*id, only_asked(errand))).collect();
    let rows = sqlx::query(include_str!("sql/payouts_send.sql"))
        .bind(claim.election.as_str())
        .bind(claim.term.get())
        .bind(take.origin.as_str())
        .bind(json_text(&errands)?)
        .bind(jobs)
        .fetch_all(&mut *connection)
        .await?;
    let mut payouts = rows.iter().map(|row| payout(row, take, picked)).collect::<Result<Vec<_>, _>>()?;
    payouts.sort_unstable_by_key(|payout| payout.instruction);
    let begun: Vec<(i64, u32, bool)> =
        payouts.iter().map(|payout| (payout.instruction, payout.attempt, only_asked(&payout.errand))).collect();
    tries::begin(connection, claim, &begun).await?;
    Ok(payouts)
}

fn payout(row: &SqliteRow, take: &PayoutTake, picked: &BTreeMap<i64, (Errand, bool)>) -> Result<Payout, sqlx::Error> {
    let instruction: i64 = row.try_get("id")?;
    let job: i64 = row.try_get("job_id")?;
    let not_picked = || sqlx::Error::Decode("a payout was taken that was not picked".into());
    let terms = take.jobs.iter().find(|terms| terms.job == job).ok_or_else(not_picked)?;
    let (errand, left_before) = picked.get(&instruction).copied().ok_or_else(not_picked)?;
    // By the rules of the first try, or those of now where they are stricter.
    let valid_for =
        micros(row.try_get("valid_for")?).min(terms.key_valid_for.saturating_sub(micros(row.try_get("age")?)));
    Ok(Payout {
        instruction,
        job,
        run: row.try_get("run_id")?,
        batch: row.try_get("batch_id")?,
        idempotency_key: row.try_get("idempotency_key")?,
        body: row.try_get("body")?,
        attempt: small_count(row, "attempts")?,
        in_doubt: row.try_get("in_doubt")?,
        left_before,
        errand,
        // Twice the time-out before the key's end is the end.
        leaves_within: valid_for.saturating_sub(terms.timeout.saturating_mul(2)),
        taken_at: time(row, "now")?,
    })
}

async fn next_in(
    connection: &mut SqliteConnection,
    claim: &Claim,
    jobs: &str,
) -> Result<Option<Duration>, sqlx::Error> {
    let next: Option<i64> = sqlx::query_scalar(include_str!("sql/payouts_next.sql"))
        .bind(claim.election.as_str())
        .bind(jobs)
        .fetch_one(connection)
        .await?;
    Ok(next.map(micros))
}

/// Puts back the payouts that stand on the wire to a receiver under this claim and are not among `kept`, in an open
/// transaction that has entered the fence. Answers how many.
///
/// # Errors
/// Any [`StoreError`]; the caller rolls back.
pub(super) async fn put_back_payouts(
    connection: &mut SqliteConnection,
    claim: &Claim,
    origin: &str,
    kept: &[(i64, u32)],
) -> Result<Done<u64>, StoreError> {
    let put = sqlx::query(include_str!("sql/payouts_put_back.sql"))
        .bind(claim.election.as_str())
        .bind(claim.term.get())
        .bind(origin)
        .bind(json_text(kept).map_err(at(PUT_BACK))?)
        .fetch_all(&mut *connection)
        .await
        .map_err(at(PUT_BACK))?;
    tries::not_sent(connection, &put).await.map_err(at(PUT_BACK))?;
    Ok(Done::Commit(put.len() as u64))
}

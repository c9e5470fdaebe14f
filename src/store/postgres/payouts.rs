//! Payouts on their way: taken (written down as on the wire), recorded, or put back.
//!
//! Invariants:
//! - A payout is committed as `sending` under this term before its first byte; key and bytes are those of the first time.
//! - What may not leave any more is held in the same transaction that finds it.
//! - A try is recorded only while it is on the wire under this term and is the one that is named.
//! - The order of locks: in a take the receiver's row, then instructions that nobody holds (they are passed over, never
//!   waited for); in a record instructions by id, then the receiver's row.

use std::collections::BTreeMap;
use std::time::Duration;

use sqlx::Row;
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::types::Json;

use super::charge::{bounded, millis};
use super::columns::instruction_state;
use super::error::at;
use super::tx::Done;
use crate::domain::Claim;
use crate::domain::instruction::InstructionState;
use crate::store::readable::{Said, readable};
use crate::store::{
    Errand, Payout, PayoutFate, PayoutJob, PayoutRecord, PayoutRecords, PayoutTake, PayoutsRecorded, PayoutsTaken,
    StoreError, TOO_MANY_REFUSALS,
};

const JOBS: &str = "payout_jobs";
const TAKE: &str = "take_payouts";
const RECORD: &str = "record_payouts";
const PUT_BACK: &str = "put_back_payouts";

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

/// Whether a receiver may be sent to now.
enum Way {
    Open,
    /// Stopped; one may be tried.
    Probe(String),
    /// Stopped, with the wait until one may be tried, if any ever by itself.
    Closed(String, Option<Duration>),
}

async fn taken(
    connection: &mut PgConnection,
    claim: &Claim,
    take: &PayoutTake,
) -> Result<Done<PayoutsTaken>, sqlx::Error> {
    let (limit, stopped) = match way(connection, take).await? {
        Way::Open => (take.limit.clamp(1, MOST_TAKEN), None),
        Way::Probe(reason) => (1, Some(reason)),
        Way::Closed(reason, next_in) => {
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
        let (first, longest) = take.probe_waits;
        sqlx::query(include_str!("sql/payouts_probe.sql"))
            .bind(take.origin.as_str())
            .bind(millis(first))
            .bind(millis(longest))
            .execute(&mut *connection)
            .await?;
    }
    crate::point!("store.payouts.after_take");
    Ok(Done::Commit(PayoutsTaken { payouts, held, stopped, next_in, full }))
}

async fn way(connection: &mut PgConnection, take: &PayoutTake) -> Result<Way, sqlx::Error> {
    let row = sqlx::query(include_str!("sql/payouts_receiver.sql"))
        .bind(take.origin.as_str())
        .fetch_optional(connection)
        .await?;
    let Some(row) = row else { return Ok(Way::Open) };
    if !row.try_get::<bool, _>("stopped")? {
        return Ok(Way::Open);
    }
    let reason: String = row.try_get::<Option<String>, _>("reason")?.unwrap_or_default();
    if row.try_get("needs_resume")? {
        return Ok(Way::Closed(reason, None));
    }
    let wait = row.try_get::<Option<i64>, _>("probe_in_ms")?.and_then(|wait| u64::try_from(wait).ok()).unwrap_or(0);
    Ok(if wait == 0 || take.probe_now {
        Way::Probe(reason)
    } else {
        Way::Closed(reason, Some(Duration::from_millis(wait)))
    })
}

/// The rules of the jobs, as bound to the statements.
struct Columns {
    job: Vec<i64>,
    idempotent: Vec<bool>,
    looks_up: Vec<bool>,
    valid_ms: Vec<i64>,
    timeout_ms: Vec<i64>,
    maxima: Vec<Json<BTreeMap<String, i64>>>,
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
        }
    }
}

/// Payouts that are locked, by what is to be done.
#[derive(Default)]
struct Picked {
    send: BTreeMap<i64, Errand>,
    holds: Holds,
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
    let rows = sqlx::query(include_str!("sql/payouts_pick.sql"))
        .bind(claim.election.as_str())
        .bind(take.origin.as_str())
        .bind(i64::from(limit))
        .bind(&columns.job)
        .bind(&columns.idempotent)
        .bind(&columns.looks_up)
        .bind(&columns.valid_ms)
        .bind(&columns.timeout_ms)
        .bind(&columns.maxima)
        .fetch_all(connection)
        .await?;
    let mut picked = Picked::default();
    for row in &rows {
        let id: i64 = row.try_get("id")?;
        match row.try_get("verdict")? {
            "send" => _ = picked.send.insert(id, Errand::Send),
            "ask_then_send" => _ = picked.send.insert(id, Errand::AskThenSend),
            "ask" => _ = picked.send.insert(id, Errand::Ask { last: false }),
            "ask_last" => _ = picked.send.insert(id, Errand::Ask { last: true }),
            "merchant" => picked.holds.push(id, "merchant", None),
            "over_limit" => picked.holds.push(id, "over_limit", None),
            "moved" => picked.holds.push(id, "unknown", Some("in doubt at another receiver than the job's now")),
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
    let only_asked = |errand: &Errand| match errand {
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
    let errand = picked.send.get(&instruction).copied();
    Ok(Payout {
        instruction,
        job: row.try_get("job_id")?,
        idempotency_key: row.try_get("idempotency_key")?,
        body: row.try_get("body")?,
        attempt: attempt.unsigned_abs(),
        in_doubt: row.try_get("in_doubt")?,
        errand: errand.ok_or_else(|| sqlx::Error::Decode("a payout was taken that was not picked".into()))?,
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
    let needs_resume = receiver(connection, claim, records, &told.states).await.map_err(at(RECORD))?;
    crate::point!("store.payouts.after_record");
    Ok(Done::Commit(PayoutsRecorded { states: told.states, needs_resume }))
}

async fn write(
    connection: &mut PgConnection,
    claim: &Claim,
    records: &[PayoutRecord],
) -> Result<Vec<PgRow>, sqlx::Error> {
    let fates: Vec<Fate> = records.iter().map(|record| Fate::of(&record.fate)).collect();
    sqlx::query(include_str!("sql/payouts_record.sql"))
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
            PayoutFate::Back { error, again_in } => ("back", error.as_deref(), *again_in, None),
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

/// Notes what the answers say about the receiver. Only tries that were recorded now count, so that a record that is repeated
/// counts once. Answers whether it is stopped until an operator resumes it.
async fn receiver(
    connection: &mut PgConnection,
    claim: &Claim,
    records: &PayoutRecords,
    told: &[(i64, InstructionState)],
) -> Result<bool, sqlx::Error> {
    let counts = |record: &&PayoutRecord| !record.asked && told.iter().any(|(id, _)| *id == record.instruction);
    let (mut paid, mut refused) = (false, 0_i32);
    for record in records.records.iter().filter(counts) {
        match record.fate {
            PayoutFate::Paid { .. } => (paid, refused) = (true, 0),
            PayoutFate::Rejected { .. } => refused = refused.saturating_add(1),
            PayoutFate::Mismatch { .. } | PayoutFate::Unknown { .. } | PayoutFate::Back { .. } => {}
        }
    }
    let mut in_a_row = 0;
    if paid || refused > 0 {
        let found: Option<i32> = sqlx::query_scalar(include_str!("sql/receiver_answers.sql"))
            .bind(records.origin.as_str())
            .bind(paid)
            .bind(refused)
            .bind(claim.term.get())
            .fetch_optional(&mut *connection)
            .await?;
        in_a_row = found.unwrap_or(0);
    }
    let too_many = refused > 0 && in_a_row.unsigned_abs() >= records.max_refusals;
    let stop = match &records.stop {
        _ if too_many => Some((TOO_MANY_REFUSALS, format!("{in_a_row} refusals in a row"))),
        Some((reason, detail)) if !told.is_empty() => Some((*reason, bounded(detail))),
        Some(_) | None => None,
    };
    if let Some((reason, detail)) = stop {
        sqlx::query(include_str!("sql/receiver_stop.sql"))
            .bind(records.origin.as_str())
            .bind(reason)
            .bind(detail)
            .bind(claim.term.get())
            .bind(millis(records.probe_after))
            .bind(in_a_row)
            .bind(too_many)
            .execute(connection)
            .await?;
    }
    Ok(too_many)
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

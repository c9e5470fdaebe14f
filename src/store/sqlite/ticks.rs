//! Ticks: one run row each, together with how far they bring their job, in one transaction.
//!
//! A tick that has its run already is counted and not doubled: by the unique index, whoever fires and however often.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use chrono::{DateTime, Utc};
use sqlx::Row;
use sqlx::sqlite::{SqliteConnection, SqliteRow};

use super::columns::{date_text, json_text, micros, time};
use super::error::at;
use super::tx::Done;
use crate::domain::Claim;
use crate::store::recording::{FoundJob, Recording, Written};
use crate::store::{JobRow, StoreError, TickRecord, TicksOutcome, TicksRecord};

/// Records ticks of one job.
pub(super) async fn record_ticks(
    connection: &mut SqliteConnection,
    claim: &Claim,
    record: &TicksRecord,
) -> Result<Done<TicksOutcome>, StoreError> {
    let one = |mut outcomes: Vec<TicksOutcome>| outcomes.pop().unwrap_or(TicksOutcome::Moved);
    Ok(match record_many(connection, claim, std::slice::from_ref(record)).await? {
        Done::Commit(outcomes) => Done::Commit(one(outcomes)),
        Done::RollBack(outcomes) => Done::RollBack(one(outcomes)),
    })
}

/// Records ticks of several jobs, each of them once: three statements, however many there are.
pub(super) async fn record_many(
    connection: &mut SqliteConnection,
    claim: &Claim,
    records: &[TicksRecord],
) -> Result<Done<Vec<TicksOutcome>>, StoreError> {
    let operation = "record_ticks";
    let names: Vec<&str> = records.iter().map(|record| record.job.definition.name.as_str()).collect();
    let rows = sqlx::query(include_str!("sql/jobs_lock.sql"))
        .bind(json_text(&names).map_err(at(operation))?)
        .fetch_all(&mut *connection)
        .await
        .map_err(at(operation))?;
    let Some(now) = rows.first().map(|row| time(row, "now")).transpose().map_err(at(operation))? else {
        return Ok(Done::RollBack(vec![TicksOutcome::Moved; records.len()]));
    };
    let found = rows.iter().map(|row| Ok((row.try_get("id")?, found_job(row)?))).collect::<Result<_, _>>();
    let recording = Recording::decide(claim, records, &found.map_err(at(operation))?, now);
    let marks: Vec<_> =
        recording.sound().iter().map(|record| (record.job.id, micros(record.evaluated_until))).collect();
    if marks.is_empty() {
        return Ok(Done::RollBack(recording.refused()));
    }
    let written = insert(&mut *connection, operation, claim, &recording.ticks()).await?;
    let moved = sqlx::query(include_str!("sql/jobs_evaluated.sql"))
        .bind(json_text(&marks).map_err(at(operation))?)
        .bind(claim.term.get())
        .execute(connection)
        .await
        .map_err(at(operation))?
        .rows_affected();
    if moved != marks.len() as u64 {
        // Nobody else writes: what was compared stands.
        let detail = format!("{} jobs were compared, {moved} are as they were", marks.len());
        return Err(StoreError::Broken { operation, detail });
    }
    Ok(Done::Commit(recording.written(written)))
}

/// Those of these ticks that have a row.
pub(super) async fn recorded(
    connection: &mut SqliteConnection,
    ticks: &[(i64, DateTime<Utc>)],
) -> Result<Done<BTreeSet<(i64, DateTime<Utc>)>>, StoreError> {
    let operation = "recorded";
    let given: Vec<_> = ticks.iter().map(|(job, tick)| (*job, micros(*tick))).collect();
    let rows = sqlx::query(include_str!("sql/ticks_recorded.sql"))
        .bind(json_text(&given).map_err(at(operation))?)
        .fetch_all(connection)
        .await
        .map_err(at(operation))?;
    let found = rows.iter().map(|row| Ok((row.try_get("job_id")?, time(row, "tick")?))).collect::<Result<_, _>>();
    Ok(Done::RollBack(found.map_err(at(operation))?))
}

fn found_job(row: &SqliteRow) -> Result<FoundJob<'_>, sqlx::Error> {
    Ok(FoundJob {
        election: row.try_get("election")?,
        fingerprint: row.try_get("fingerprint")?,
        evaluated_until: time(row, "evaluated_until")?,
        paused: row.try_get("paused_reason")?,
        removed: row.try_get("removed")?,
    })
}

/// Inserts the run rows of ticks, whose jobs' rows are locked. Answers what that did, by job.
pub(super) async fn insert(
    connection: &mut SqliteConnection,
    operation: &'static str,
    claim: &Claim,
    ticks: &[(&JobRow, &TickRecord)],
) -> Result<BTreeMap<i64, Written>, StoreError> {
    let mut written: BTreeMap<i64, Written> = BTreeMap::new();
    if ticks.is_empty() {
        return Ok(written);
    }
    let given: Vec<_> = ticks
        .iter()
        .map(|(job, tick)| {
            (
                job.id,
                job.definition.timing.run_deadline.map(microseconds),
                micros(tick.tick),
                micros(tick.due_at),
                micros(tick.cutoff_at),
                date_text(tick.value_date),
                tick.fate.state().as_str(),
                tick.fate.why(),
                i64::from(tick.fate.is_caught_up()),
            )
        })
        .collect();
    let rows = sqlx::query(include_str!("sql/ticks_insert.sql"))
        .bind(claim.election.as_str())
        .bind(claim.term.get())
        .bind(json_text(&given).map_err(at(operation))?)
        .fetch_all(connection)
        .await
        .map_err(at(operation))?;
    for row in &rows {
        let of_job = written.entry(row.try_get("job_id").map_err(at(operation))?).or_default();
        of_job.rows += 1;
        of_job.opened.extend(opened_run(row).map_err(at(operation))?);
    }
    Ok(written)
}

fn opened_run(row: &SqliteRow) -> Result<Option<(DateTime<Utc>, Duration)>, sqlx::Error> {
    let lateness: i64 = row.try_get("lateness_ms")?;
    let lateness = Duration::from_millis(u64::try_from(lateness).unwrap_or(0));
    Ok(if row.try_get("opened")? { Some((time(row, "tick")?, lateness)) } else { None })
}

/// A deadline as it is added to a time.
pub(super) fn microseconds(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX)
}

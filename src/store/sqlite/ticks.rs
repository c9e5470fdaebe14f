//! Ticks: one run row each, together with how far they bring their job, in one transaction.
//!
//! A tick that has its run already is counted and not doubled: by the unique index, whoever fires and however often.

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::{DateTime, Utc};
use sqlx::Row;
use sqlx::sqlite::{SqliteConnection, SqliteRow};

use super::columns::{date_text, json_text, micros, time};
use super::error::at;
use super::tx::Done;
use crate::domain::Claim;
use crate::store::{JobRow, StoreError, TickFate, TickRecord, TicksOutcome, TicksRecord};

/// Records ticks of several jobs in one transaction.
pub(super) async fn record_many(
    connection: &mut SqliteConnection,
    claim: &Claim,
    records: &[TicksRecord],
) -> Result<Done<Vec<TicksOutcome>>, StoreError> {
    let mut outcomes = Vec::with_capacity(records.len());
    let mut wrote = false;
    for record in records {
        outcomes.push(match record_ticks(connection, claim, record).await? {
            Done::Commit(outcome) => {
                wrote = true;
                outcome
            }
            // It wrote nothing.
            Done::RollBack(outcome) => outcome,
        });
    }
    Ok(if wrote { Done::Commit(outcomes) } else { Done::RollBack(outcomes) })
}

/// Records ticks of one job.
pub(super) async fn record_ticks(
    connection: &mut SqliteConnection,
    claim: &Claim,
    record: &TicksRecord,
) -> Result<Done<TicksOutcome>, StoreError> {
    let operation = "record_ticks";
    let row = sqlx::query(include_str!("sql/job_lock.sql"))
        .bind(record.job.definition.name.as_str())
        .fetch_optional(&mut *connection)
        .await
        .map_err(at(operation))?;
    let Some(row) = row else { return Ok(Done::RollBack(TicksOutcome::Moved)) };
    let (as_read, now) = compare(&row, claim, record).map_err(at(operation))?;
    if !as_read {
        return Ok(Done::RollBack(TicksOutcome::Moved));
    }
    if record.evaluated_until > now {
        return Ok(Done::RollBack(TicksOutcome::NotYet { now }));
    }
    let written = insert(connection, operation, claim, &record.job, &record.ticks).await?;
    let moved = sqlx::query(include_str!("sql/job_evaluated.sql"))
        .bind(record.job.id)
        .bind(micros(record.evaluated_until))
        .bind(claim.term.get())
        .execute(connection)
        .await
        .map_err(at(operation))?;
    if moved.rows_affected() != 1 {
        // Nobody else writes: what was compared stands.
        let detail = format!("job {} is not as it was compared", record.job.definition.name);
        return Err(StoreError::Broken { operation, detail });
    }
    let duplicates = record.ticks.len().saturating_sub(written.rows);
    Ok(Done::Commit(TicksOutcome::Recorded {
        opened: written.opened,
        duplicates: u32::try_from(duplicates).unwrap_or(u32::MAX),
    }))
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

fn compare(row: &SqliteRow, claim: &Claim, record: &TicksRecord) -> Result<(bool, DateTime<Utc>), sqlx::Error> {
    let job = &record.job;
    let as_read = row.try_get::<i64, _>("id")? == job.id
        && row.try_get::<&str, _>("election")? == claim.election.as_str()
        && row.try_get::<&str, _>("fingerprint")? == job.fingerprint
        && time(row, "evaluated_until")? == job.evaluated_until
        // A pause is in force with the next transaction.
        && row.try_get::<Option<&str>, _>("paused_reason")? == job.paused.as_deref()
        && !row.try_get::<bool, _>("removed")?
        && job.evaluated_until <= record.evaluated_until;
    Ok((as_read, time(row, "now")?))
}

/// What inserting ticks did.
pub(super) struct Written {
    /// Rows that are new.
    rows: usize,
    /// Of those, the runs that have work, with their lateness.
    opened: Vec<(DateTime<Utc>, Duration)>,
}

/// Inserts the run rows of ticks; the job's row is locked.
pub(super) async fn insert(
    connection: &mut SqliteConnection,
    operation: &'static str,
    claim: &Claim,
    job: &JobRow,
    ticks: &[TickRecord],
) -> Result<Written, StoreError> {
    if ticks.is_empty() {
        return Ok(Written { rows: 0, opened: Vec::new() });
    }
    let given: Vec<_> = ticks
        .iter()
        .map(|tick| {
            (
                micros(tick.tick),
                micros(tick.due_at),
                micros(tick.cutoff_at),
                date_text(tick.value_date),
                tick.fate.state().as_str(),
                why(&tick.fate),
                i64::from(is_caught_up(&tick.fate)),
            )
        })
        .collect();
    let rows = sqlx::query(include_str!("sql/ticks_insert.sql"))
        .bind(job.id)
        .bind(claim.election.as_str())
        .bind(claim.term.get())
        .bind(job.definition.timing.run_deadline.map(microseconds))
        .bind(json_text(&given).map_err(at(operation))?)
        .fetch_all(connection)
        .await
        .map_err(at(operation))?;
    let opened = rows.iter().filter_map(|row| opened_run(row).transpose()).collect::<Result<_, _>>();
    Ok(Written { rows: rows.len(), opened: opened.map_err(at(operation))? })
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

/// Why a tick has no work.
pub(super) fn why(fate: &TickFate) -> Option<&str> {
    match fate {
        TickFate::Open { .. } => None,
        TickFate::Skipped(why) | TickFate::Coalesced(why) | TickFate::Missed(why) => Some(why),
    }
}

fn is_caught_up(fate: &TickFate) -> bool {
    match fate {
        TickFate::Open { caught_up } => *caught_up,
        TickFate::Skipped(_) | TickFate::Coalesced(_) | TickFate::Missed(_) => false,
    }
}

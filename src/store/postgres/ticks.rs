//! Ticks: one run row each, together with how far they bring their job, in one transaction.
//!
//! A tick that has its run already is counted and not doubled: by the unique index, whoever fires and however often.

use std::time::Duration;

use chrono::{DateTime, NaiveDate, Utc};
use sqlx::Row;
use sqlx::postgres::{PgConnection, PgRow};

use super::error::at;
use super::tx::Done;
use crate::domain::Claim;
use crate::store::{JobRow, StoreError, TickFate, TickRecord, TicksOutcome, TicksRecord};

/// Records ticks of one job.
pub(super) async fn record_ticks(
    connection: &mut PgConnection,
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
    if record.evaluated_until > now && !crate::mutant!("ticks.before-the-stores-clock") {
        return Ok(Done::RollBack(TicksOutcome::NotYet { now }));
    }
    crate::mutant!("ticks.mark-moved-first" => sqlx::raw_sql("update bursar.job set evaluated_until = clock_timestamp(); commit; begin").execute(&mut *connection).await.map_err(at(operation))?;);
    let written = insert(connection, operation, claim, &record.job, &record.ticks).await?;
    let moved = sqlx::query(include_str!("sql/job_evaluated.sql"))
        .bind(record.job.id)
        .bind(record.evaluated_until)
        .bind(claim.term.get())
        .execute(connection)
        .await
        .map_err(at(operation))?;
    if moved.rows_affected() != 1 {
        return Ok(Done::RollBack(TicksOutcome::Moved));
    }
    let duplicates = record.ticks.len().saturating_sub(written.rows);
    Ok(Done::Commit(TicksOutcome::Recorded {
        opened: written.opened,
        duplicates: u32::try_from(duplicates).unwrap_or(u32::MAX),
    }))
}

fn compare(row: &PgRow, claim: &Claim, record: &TicksRecord) -> Result<(bool, DateTime<Utc>), sqlx::Error> {
    let job = &record.job;
    let as_read = row.try_get::<i64, _>("id")? == job.id
        && row.try_get::<&str, _>("election")? == claim.election.as_str()
        && row.try_get::<&str, _>("fingerprint")? == job.fingerprint
        && row.try_get::<DateTime<Utc>, _>("evaluated_until")? == job.evaluated_until
        && !row.try_get::<bool, _>("removed")?
        && job.evaluated_until <= record.evaluated_until;
    Ok((as_read, row.try_get("now")?))
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
    connection: &mut PgConnection,
    operation: &'static str,
    claim: &Claim,
    job: &JobRow,
    ticks: &[TickRecord],
) -> Result<Written, StoreError> {
    if ticks.is_empty() {
        return Ok(Written { rows: 0, opened: Vec::new() });
    }
    let deadline = job.definition.timing.run_deadline.map(seconds);
    let rows = sqlx::query(crate::sql!("sql/ticks_insert.sql"))
        .bind(job.id)
        .bind(claim.election.as_str())
        .bind(claim.term.get())
        .bind(deadline)
        .bind(ticks.iter().map(|tick| tick.tick).collect::<Vec<_>>())
        .bind(ticks.iter().map(|tick| tick.due_at).collect::<Vec<_>>())
        .bind(ticks.iter().map(|tick| tick.cutoff_at).collect::<Vec<_>>())
        .bind(ticks.iter().map(|tick| tick.value_date).collect::<Vec<NaiveDate>>())
        .bind(ticks.iter().map(|tick| tick.fate.state().as_str()).collect::<Vec<_>>())
        .bind(ticks.iter().map(|tick| why(&tick.fate)).collect::<Vec<Option<&str>>>())
        .bind(ticks.iter().map(|tick| is_caught_up(&tick.fate)).collect::<Vec<_>>())
        .fetch_all(connection)
        .await
        .map_err(at(operation))?;
    let opened = rows.iter().filter_map(|row| opened_run(row).transpose()).collect::<Result<_, _>>();
    Ok(Written { rows: rows.len(), opened: opened.map_err(at(operation))? })
}

fn opened_run(row: &PgRow) -> Result<Option<(DateTime<Utc>, Duration)>, sqlx::Error> {
    let lateness: i64 = row.try_get("lateness_ms")?;
    let lateness = Duration::from_millis(u64::try_from(lateness).unwrap_or(0));
    Ok(if row.try_get("opened")? { Some((row.try_get("tick")?, lateness)) } else { None })
}

/// A deadline as PostgreSQL's interval takes it.
pub(super) fn seconds(time: Duration) -> f64 {
    time.as_secs_f64()
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

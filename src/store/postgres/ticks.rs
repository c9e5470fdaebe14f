//! Ticks: one run row each, together with how far they bring their job, in one transaction.
//!
//! A tick that has its run already is counted and not doubled: by the unique index, whoever fires and however often.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use chrono::{DateTime, NaiveDate, Utc};
use sqlx::Row;
use sqlx::postgres::{PgConnection, PgRow};

use super::error::at;
use super::tx::Done;
use crate::domain::Claim;
use crate::store::recording::{FoundJob, Recording, Written};
use crate::store::{JobRow, StoreError, TickRecord, TicksOutcome, TicksRecord};

/// Records ticks of one job.
pub(super) async fn record_ticks(
    connection: &mut PgConnection,
    claim: &Claim,
    record: &TicksRecord,
) -> Result<Done<TicksOutcome>, StoreError> {
    let one = |mut outcomes: Vec<TicksOutcome>| outcomes.pop().unwrap_or(TicksOutcome::Moved);
    Ok(match record_many(connection, claim, std::slice::from_ref(record)).await? {
        Done::Commit(outcomes) => Done::Commit(one(outcomes)),
        Done::RollBack(outcomes) => Done::RollBack(one(outcomes)),
    })
}

/// Those of these ticks that have a row.
pub(super) async fn recorded(
    connection: &mut PgConnection,
    ticks: &[(i64, DateTime<Utc>)],
) -> Result<Done<BTreeSet<(i64, DateTime<Utc>)>>, StoreError> {
    let (jobs, times): (Vec<i64>, Vec<DateTime<Utc>>) = ticks.iter().copied().unzip();
    let rows = sqlx::query_as(include_str!("sql/ticks_recorded.sql"))
        .bind(jobs)
        .bind(times)
        .fetch_all(connection)
        .await
        .map_err(at("recorded"))?;
    Ok(Done::RollBack(rows.into_iter().collect()))
}

/// Records ticks of several jobs, each of them once: four statements, however many there are.
pub(super) async fn record_many(
    connection: &mut PgConnection,
    claim: &Claim,
    records: &[TicksRecord],
) -> Result<Done<Vec<TicksOutcome>>, StoreError> {
    let operation = "record_ticks";
    let names: Vec<&str> = records.iter().map(|record| record.job.definition.name.as_str()).collect();
    let rows = sqlx::query(include_str!("sql/jobs_lock.sql"))
        .bind(names)
        .fetch_all(&mut *connection)
        .await
        .map_err(at(operation))?;
    let now = super::binding::now(&mut *connection).await?;
    let found = rows.iter().map(|row| Ok((row.try_get("id")?, found_job(row)?))).collect::<Result<_, _>>();
    let recording = Recording::decide(claim, records, &found.map_err(at(operation))?, now);
    let (jobs, marks): (Vec<_>, Vec<_>) =
        recording.sound().iter().map(|record| (record.job.id, record.evaluated_until)).unzip();
    let moving = jobs.len() as u64;
    if moving == 0 {
        return Ok(Done::RollBack(recording.refused()));
    }
    crate::mutant!("ticks.mark-moved-first" => sqlx::raw_sql("update bursar.job set evaluated_until = clock_timestamp(); commit; begin").execute(&mut *connection).await.map_err(at(operation))?;);
    let written = insert(&mut *connection, operation, claim, &recording.ticks()).await?;
    let moved = sqlx::query(include_str!("sql/jobs_evaluated.sql"))
        .bind(jobs)
        .bind(marks)
        .bind(claim.term.get())
        .execute(connection)
        .await
        .map_err(at(operation))?
        .rows_affected();
    if moved != moving {
        let detail = format!("{moving} jobs were compared, {moved} are as they were");
        return Err(StoreError::Broken { operation, detail });
    }
    Ok(Done::Commit(recording.written(written)))
}

fn found_job(row: &PgRow) -> Result<FoundJob<'_>, sqlx::Error> {
    Ok(FoundJob {
        election: row.try_get("election")?,
        fingerprint: row.try_get("fingerprint")?,
        evaluated_until: row.try_get("evaluated_until")?,
        paused: row.try_get("paused_reason")?,
        removed: row.try_get("removed")?,
    })
}

/// Inserts the run rows of ticks, whose jobs' rows are locked. Answers what that did, by job.
pub(super) async fn insert(
    connection: &mut PgConnection,
    operation: &'static str,
    claim: &Claim,
    ticks: &[(&JobRow, &TickRecord)],
) -> Result<BTreeMap<i64, Written>, StoreError> {
    let mut written: BTreeMap<i64, Written> = BTreeMap::new();
    if ticks.is_empty() {
        return Ok(written);
    }
    let rows = sqlx::query(crate::sql!("sql/ticks_insert.sql"))
        .bind(ticks.iter().map(|(job, _)| job.id).collect::<Vec<_>>())
        .bind(claim.election.as_str())
        .bind(claim.term.get())
        .bind(
            ticks.iter().map(|(job, _)| job.definition.timing.run_deadline.map(seconds)).collect::<Vec<Option<f64>>>(),
        )
        .bind(ticks.iter().map(|(_, tick)| tick.tick).collect::<Vec<_>>())
        .bind(ticks.iter().map(|(_, tick)| tick.due_at).collect::<Vec<_>>())
        .bind(ticks.iter().map(|(_, tick)| tick.cutoff_at).collect::<Vec<_>>())
        .bind(ticks.iter().map(|(_, tick)| tick.value_date).collect::<Vec<NaiveDate>>())
        .bind(ticks.iter().map(|(_, tick)| tick.fate.state().as_str()).collect::<Vec<_>>())
        .bind(ticks.iter().map(|(_, tick)| tick.fate.why()).collect::<Vec<_>>())
        .bind(ticks.iter().map(|(_, tick)| tick.fate.is_caught_up()).collect::<Vec<_>>())
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

fn opened_run(row: &PgRow) -> Result<Option<(DateTime<Utc>, Duration)>, sqlx::Error> {
    let lateness: i64 = row.try_get("lateness_ms")?;
    let lateness = Duration::from_millis(u64::try_from(lateness).unwrap_or(0));
    Ok(if row.try_get("opened")? { Some((row.try_get("tick")?, lateness)) } else { None })
}

/// A deadline as PostgreSQL's interval takes it.
pub(super) fn seconds(time: Duration) -> f64 {
    time.as_secs_f64()
}

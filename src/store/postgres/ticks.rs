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
use crate::store::{JobRow, StoreError, TickFate, TickRecord, TicksOutcome, TicksRecord};

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
    let mut found: BTreeMap<i64, &PgRow> = BTreeMap::new();
    for row in &rows {
        found.insert(row.try_get("id").map_err(at(operation))?, row);
    }
    let mut outcomes = Vec::with_capacity(records.len());
    let mut sound: Vec<&TicksRecord> = Vec::new();
    for record in records {
        let as_read = match found.get(&record.job.id) {
            Some(row) => compare(row, claim, record).map_err(at(operation))?,
            None => false,
        };
        outcomes.push(if !as_read {
            TicksOutcome::Moved
        } else if record.evaluated_until > now && !crate::mutant!("ticks.before-the-stores-clock") {
            TicksOutcome::NotYet { now }
        } else {
            sound.push(record);
            TicksOutcome::Recorded { opened: Vec::new(), duplicates: 0 }
        });
    }
    if sound.is_empty() {
        return Ok(Done::RollBack(outcomes));
    }
    let ticks: Vec<(&JobRow, &TickRecord)> =
        sound.iter().flat_map(|record| record.ticks.iter().map(|tick| (&record.job, tick))).collect();
    crate::mutant!("ticks.mark-moved-first" => sqlx::raw_sql("update bursar.job set evaluated_until = clock_timestamp(); commit; begin").execute(&mut *connection).await.map_err(at(operation))?;);
    let mut written = insert(&mut *connection, operation, claim, &ticks).await?;
    let moved = sqlx::query(include_str!("sql/jobs_evaluated.sql"))
        .bind(sound.iter().map(|record| record.job.id).collect::<Vec<_>>())
        .bind(sound.iter().map(|record| record.evaluated_until).collect::<Vec<_>>())
        .bind(claim.term.get())
        .execute(connection)
        .await
        .map_err(at(operation))?;
    if moved.rows_affected() != sound.len() as u64 {
        let detail = format!("{} jobs were compared, {} are as they were", sound.len(), moved.rows_affected());
        return Err(StoreError::Broken { operation, detail });
    }
    for (outcome, record) in outcomes.iter_mut().zip(records) {
        if let TicksOutcome::Recorded { opened, duplicates } = outcome {
            let of_job = written.remove(&record.job.id).unwrap_or_default();
            *duplicates = u32::try_from(record.ticks.len().saturating_sub(of_job.rows)).unwrap_or(u32::MAX);
            *opened = of_job.opened;
        }
    }
    Ok(Done::Commit(outcomes))
}

fn compare(row: &PgRow, claim: &Claim, record: &TicksRecord) -> Result<bool, sqlx::Error> {
    let job = &record.job;
    Ok(row.try_get::<i64, _>("id")? == job.id
        && row.try_get::<&str, _>("election")? == claim.election.as_str()
        && row.try_get::<&str, _>("fingerprint")? == job.fingerprint
        && row.try_get::<DateTime<Utc>, _>("evaluated_until")? == job.evaluated_until
        // A pause is in force with the next transaction.
        && row.try_get::<Option<&str>, _>("paused_reason")? == job.paused.as_deref()
        && !row.try_get::<bool, _>("removed")?
        && job.evaluated_until <= record.evaluated_until)
}

/// What inserting the ticks of a job did.
#[derive(Debug, Default)]
pub(super) struct Written {
    /// Rows that are new.
    rows: usize,
    /// Of those, the runs that have work, with their lateness.
    opened: Vec<(DateTime<Utc>, Duration)>,
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
        .bind(ticks.iter().map(|(_, tick)| why(&tick.fate)).collect::<Vec<Option<&str>>>())
        .bind(ticks.iter().map(|(_, tick)| is_caught_up(&tick.fate)).collect::<Vec<_>>())
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

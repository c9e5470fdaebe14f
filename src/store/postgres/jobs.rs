//! Job rows: the definition in force and how far its ticks were evaluated.

use chrono::{DateTime, Utc};
use sqlx::Row;
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::types::Json;

use super::error::at;
use super::ticks;
use super::tx::Done;
use crate::domain::Claim;
use crate::domain::job::JobDefinition;
use crate::domain::pause::PastPause;
use crate::store::readable::{Said, readable};
use crate::store::{JobChange, JobChangeOutcome, JobRow, JobsView, StoreError};

/// The jobs of the election, and the store's time.
pub(super) async fn jobs(
    connection: &mut PgConnection,
    claim: &Claim,
    said: &Said,
) -> Result<Done<JobsView>, StoreError> {
    let operation = "jobs";
    // The time first: what a job was evaluated up to is then never after it.
    let now = super::binding::now(connection).await?;
    let rows = sqlx::query(include_str!("sql/jobs.sql"))
        .bind(claim.election.as_str())
        .fetch_all(connection)
        .await
        .map_err(at(operation))?;
    let (jobs, unreadable) = readable(&rows, job_of, said, "job", |row| row.try_get("name").ok());
    Ok(Done::RollBack(JobsView { now, jobs, unreadable }))
}

pub(super) fn job_of(row: &PgRow) -> Result<JobRow, sqlx::Error> {
    let definition: Json<JobDefinition> = row.try_get("definition")?;
    Ok(JobRow {
        id: row.try_get("id")?,
        definition: definition.0,
        fingerprint: row.try_get("fingerprint")?,
        evaluated_until: row.try_get("evaluated_until")?,
        paused: row.try_get("paused_reason")?,
        pauses: row.try_get::<Json<Vec<PastPause>>, _>("pauses")?.0,
    })
}

/// A job row as it is found under its lock.
struct Found {
    id: i64,
    election: String,
    fingerprint: String,
    evaluated_until: DateTime<Utc>,
    paused: Option<String>,
    removed: bool,
    now: DateTime<Utc>,
}

impl Found {
    fn read(row: &PgRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            id: row.try_get("id")?,
            election: row.try_get("election")?,
            fingerprint: row.try_get("fingerprint")?,
            evaluated_until: row.try_get("evaluated_until")?,
            paused: row.try_get("paused_reason")?,
            removed: row.try_get("removed")?,
            now: row.try_get("now")?,
        })
    }

    /// Whether it is the row that the caller read, and its mark stays or goes forward.
    fn is(&self, expected: &JobRow, evaluated_until: DateTime<Utc>) -> bool {
        self.id == expected.id
            && self.fingerprint == expected.fingerprint
            && self.evaluated_until == expected.evaluated_until
            // A pause is in force with the next transaction.
            && self.paused == expected.paused
            && self.evaluated_until <= evaluated_until
    }
}

/// Brings one job row up to the schedule: what the old definition owed, then the new one.
pub(super) async fn change_job(
    connection: &mut PgConnection,
    claim: &Claim,
    change: &JobChange,
) -> Result<Done<JobChangeOutcome>, StoreError> {
    let operation = "change_job";
    let row = sqlx::query(include_str!("sql/job_lock.sql"))
        .bind(change.name.as_str())
        .fetch_optional(&mut *connection)
        .await
        .map_err(at(operation))?;
    let found = row.as_ref().map(Found::read).transpose().map_err(at(operation))?;
    let moved = Ok(Done::RollBack(JobChangeOutcome::Moved));
    match (found, &change.expected) {
        (Some(found), _) if !found.removed && found.election != claim.election.as_str() => {
            Ok(Done::RollBack(JobChangeOutcome::OtherElection(found.election)))
        }
        (Some(found), Some(expected)) if !found.removed && found.is(expected, change.evaluated_until) => {
            if change.reaches() > Some(found.now) {
                return Ok(Done::RollBack(JobChangeOutcome::NotYet { now: found.now }));
            }
            let ticks: Vec<_> = change.settled.iter().map(|tick| (expected, tick)).collect();
            ticks::insert(connection, operation, claim, &ticks).await?;
            replace(connection, claim, &found, change).await
        }
        (None, None) => match &change.definition {
            Some(definition) => start(connection, claim, definition, include_str!("sql/job_insert.sql")).await,
            None => Ok(Done::RollBack(JobChangeOutcome::Changed(None))),
        },
        (Some(found), None) if found.removed => match &change.definition {
            Some(definition) => start(connection, claim, definition, include_str!("sql/job_return.sql")).await,
            None => Ok(Done::RollBack(JobChangeOutcome::Changed(None))),
        },
        (Some(_) | None, Some(_)) | (Some(_), None) => moved,
    }
}

/// A job that is new or comes back starts at the store's now. No row: somebody else was first.
async fn start(
    connection: &mut PgConnection,
    claim: &Claim,
    definition: &JobDefinition,
    statement: &'static str,
) -> Result<Done<JobChangeOutcome>, StoreError> {
    let operation = "change_job";
    let row = sqlx::query(statement)
        .bind(definition.name.as_str())
        .bind(claim.election.as_str())
        .bind(Json(definition))
        .bind(definition.fingerprint())
        .bind(claim.term.get())
        .fetch_optional(connection)
        .await
        .map_err(at(operation))?;
    match row {
        Some(row) => {
            let job = job_of(&row).map_err(at(operation))?;
            Ok(Done::Commit(JobChangeOutcome::Changed(Some(Box::new(job)))))
        }
        None => Ok(Done::RollBack(JobChangeOutcome::Moved)),
    }
}

async fn replace(
    connection: &mut PgConnection,
    claim: &Claim,
    found: &Found,
    change: &JobChange,
) -> Result<Done<JobChangeOutcome>, StoreError> {
    let operation = "change_job";
    let row = sqlx::query(include_str!("sql/job_replace.sql"))
        .bind(found.id)
        .bind(change.definition.as_ref().map(Json))
        .bind(change.definition.as_ref().map(JobDefinition::fingerprint))
        .bind(change.evaluated_until)
        .bind(claim.term.get())
        .fetch_one(connection)
        .await
        .map_err(at(operation))?;
    let job = match change.definition {
        Some(_) => Some(Box::new(job_of(&row).map_err(at(operation))?)),
        None => None,
    };
    Ok(Done::Commit(JobChangeOutcome::Changed(job)))
}

//! Pausing a job, and ending its pause: an operator's act on its row.
//!
//! Invariants: the gate of the job's election is held shared, and the act is stamped with the term found there; the row is
//! locked, so that a tick is either recorded before it or is compared with it. The act is written down in the transaction
//! that does it.

use chrono::{DateTime, Utc};
use sqlx::Row;
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::types::Json;

use super::acts::{self, Act};
use super::error::at;
use super::payout_acts::gate;
use super::tx::Done;
use crate::domain::JobName;
use crate::domain::pause::PastPause;
use crate::store::{Actor, PauseOutcome, PauseView, StoreError};

/// A job that an operator acts on, locked.
struct Found {
    id: i64,
    election: String,
    term: Option<i64>,
    now: DateTime<Utc>,
    evaluated_until: DateTime<Utc>,
    pause: Option<PauseView>,
    pauses: Vec<PastPause>,
}

impl Found {
    /// The gate first, then the row; `None` where there is no such job.
    async fn lock(
        connection: &mut PgConnection,
        operation: &'static str,
        job: &JobName,
    ) -> Result<Option<Self>, StoreError> {
        let election: Option<String> = sqlx::query_scalar(include_str!("sql/job_election.sql"))
            .bind(job.as_str())
            .fetch_optional(&mut *connection)
            .await
            .map_err(at(operation))?;
        let Some(election) = election else { return Ok(None) };
        let term = gate(&mut *connection, operation, &election).await?;
        let row = sqlx::query(include_str!("sql/job_lock.sql"))
            .bind(job.as_str())
            .fetch_one(connection)
            .await
            .map_err(at(operation))?;
        let (found, removed) = Self::read(&row, term).map_err(at(operation))?;
        if !removed && found.election != election {
            let detail = format!("job {job} has just moved to election {}: ask again", found.election);
            return Err(StoreError::TryAgain { operation, code: "40001".to_owned(), detail });
        }
        Ok((!removed).then_some(found))
    }

    fn read(row: &PgRow, term: Option<i64>) -> Result<(Self, bool), sqlx::Error> {
        let since: Option<DateTime<Utc>> = row.try_get("paused_at")?;
        let reason: Option<String> = row.try_get("paused_reason")?;
        let pause = since.map(|since| PauseView { since, reason: reason.unwrap_or_default() });
        let found = Self {
            id: row.try_get("id")?,
            election: row.try_get("election")?,
            term,
            now: row.try_get("now")?,
            evaluated_until: row.try_get("evaluated_until")?,
            pause,
            pauses: row.try_get::<Json<Vec<PastPause>>, _>("pauses")?.0,
        };
        Ok((found, row.try_get("removed")?))
    }

    async fn write_act(
        &self,
        connection: &mut PgConnection,
        operation: &'static str,
        actor: &Actor,
        (action, job, reason): (&'static str, &JobName, &str),
    ) -> Result<(), StoreError> {
        let target = format!("job {job}");
        let act = Act {
            action,
            target: &target,
            reason: Some(reason),
            election: Some(&self.election),
            term: self.term,
            details: None,
        };
        acts::write(connection, operation, actor, act).await.map(|_| ())
    }
}

/// Rolls everything back where the row was not as it was read.
fn one_row(operation: &'static str, job: &JobName, rows: u64) -> Result<(), StoreError> {
    match rows {
        1 => Ok(()),
        _ => Err(StoreError::Broken { operation, detail: format!("job {job} is not as it was found") }),
    }
}

/// Pauses a job, in an open transaction.
pub(super) async fn pause(
    connection: &mut PgConnection,
    job: &JobName,
    reason: &str,
    actor: &Actor,
) -> Result<Done<PauseOutcome>, StoreError> {
    const OPERATION: &str = "pause_job";
    let Some(found) = Found::lock(&mut *connection, OPERATION, job).await? else {
        return Ok(Done::RollBack(PauseOutcome::NotFound));
    };
    if found.pause.is_some() {
        return Ok(Done::RollBack(PauseOutcome::Already { pause: found.pause }));
    }
    let paused = sqlx::query(include_str!("sql/job_pause.sql"))
        .bind(found.id)
        .bind(reason)
        .execute(&mut *connection)
        .await
        .map_err(at(OPERATION))?;
    one_row(OPERATION, job, paused.rows_affected())?;
    found.write_act(connection, OPERATION, actor, ("pause", job, reason)).await?;
    Ok(Done::Commit(PauseOutcome::Done))
}

/// Ends a job's pause, in an open transaction.
pub(super) async fn unpause(
    connection: &mut PgConnection,
    job: &JobName,
    reason: &str,
    actor: &Actor,
) -> Result<Done<PauseOutcome>, StoreError> {
    const OPERATION: &str = "unpause_job";
    let Some(mut found) = Found::lock(&mut *connection, OPERATION, job).await? else {
        return Ok(Done::RollBack(PauseOutcome::NotFound));
    };
    let Some(pause) = found.pause.take() else {
        return Ok(Done::RollBack(PauseOutcome::Already { pause: None }));
    };
    let ended = PastPause { from: pause.since, until: found.now, reason: pause.reason };
    let kept = PastPause::kept(std::mem::take(&mut found.pauses), ended, found.evaluated_until);
    let unpaused = sqlx::query(include_str!("sql/job_unpause.sql"))
        .bind(found.id)
        .bind(Json(kept))
        .execute(&mut *connection)
        .await
        .map_err(at(OPERATION))?;
    one_row(OPERATION, job, unpaused.rows_affected())?;
    found.write_act(connection, OPERATION, actor, ("unpause", job, reason)).await?;
    Ok(Done::Commit(PauseOutcome::Done))
}

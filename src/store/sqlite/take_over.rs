//! A job goes over from one election to another: taken by the leader of the one that it goes to. The file's write lock is the
//! gate of both: nobody advances, halts or resumes either meanwhile.
//!
//! The job's row goes over as it is: what its old definition owes, and what an edit changes beside the election, is the new
//! leader's to record, as for any job of its own. Runs, units and instructions stay in the election that opened them; what was
//! asked for and not executed comes along.

use sqlx::Row;
use sqlx::sqlite::SqliteConnection;

use super::columns::{json, json_text};
use super::error::at;
use super::fence;
use super::jobs::job_of;
use super::tx::Done;
use crate::domain::job::JobDefinition;
use crate::domain::{Claim, ElectionName, JobName};
use crate::store::{StoreError, TakeOverOutcome};

const OPERATION: &str = "take_over_job";

/// Takes the job over, in a transaction that has entered the fence.
pub(super) async fn take_over(
    connection: &mut SqliteConnection,
    claim: &Claim,
    job: &JobName,
    from: &ElectionName,
) -> Result<Done<TakeOverOutcome>, StoreError> {
    if let Some(halt) = fence::read(&mut *connection, OPERATION, from).await?.and_then(|fence| fence.halt) {
        return Ok(Done::RollBack(TakeOverOutcome::Halted(halt)));
    }
    let row = sqlx::query(include_str!("sql/take_over_read.sql"))
        .bind(job.as_str())
        .fetch_optional(&mut *connection)
        .await
        .map_err(at(OPERATION))?;
    let Some(row) = row else { return Ok(Done::RollBack(TakeOverOutcome::NotThere)) };
    let there = row.try_get::<&str, _>("election").map_err(at(OPERATION))? == from.as_str()
        && !row.try_get::<bool, _>("removed").map_err(at(OPERATION))?;
    if !there || *from == claim.election {
        return Ok(Done::RollBack(TakeOverOutcome::NotThere));
    }
    let mut definition: JobDefinition = json(&row, "definition").map_err(at(OPERATION))?;
    definition.election = claim.election.clone();
    let id: i64 = row.try_get("id").map_err(at(OPERATION))?;
    sqlx::query(include_str!("sql/take_over_requests.sql"))
        .bind(job.as_str())
        .bind(from.as_str())
        .bind(claim.election.as_str())
        .execute(&mut *connection)
        .await
        .map_err(at(OPERATION))?;
    let row = sqlx::query(include_str!("sql/take_over_job.sql"))
        .bind(id)
        .bind(claim.election.as_str())
        .bind(json_text(&definition).map_err(at(OPERATION))?)
        .bind(definition.fingerprint())
        .bind(claim.term.get())
        .fetch_one(connection)
        .await
        .map_err(at(OPERATION))?;
    Ok(Done::Commit(TakeOverOutcome::Taken(Box::new(job_of(&row).map_err(at(OPERATION))?))))
}

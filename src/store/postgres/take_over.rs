//! A job goes over from one election to another: taken by the leader of the one that it goes to.
//!
//! Invariants:
//! - The gates of both elections are held shared, taken in the order of names as everybody does who takes several: nobody
//!   advances, halts or resumes either meanwhile, and nothing is taken from an election that is halted.
//! - The job's row goes over as it is. What its old definition owes, and what an edit changes beside the election, is the new
//!   leader's to record, as for any job of its own; so a crash after this transaction leaves nothing half done.
//! - Runs, units and instructions stay in the election that opened them. What was asked for and not executed comes along.

use sqlx::Row;
use sqlx::postgres::PgConnection;
use sqlx::types::Json;

use super::error::at;
use super::fence;
use super::jobs::job_of;
use super::tx::{Done, Tx};
use super::within::{ENTER, within};
use crate::domain::job::JobDefinition;
use crate::domain::{Claim, ElectionName, JobName};
use crate::store::{StoreError, TakeOverOutcome};

const OPERATION: &str = "take_over_job";

/// Whether the gate of `from` is taken before that of the claim.
pub(super) fn comes_first(from: &ElectionName, claim: &Claim) -> bool {
    from.as_str() < claim.election.as_str()
}

/// Takes another election's gate shared in a transaction that has not entered the fence yet.
pub(super) async fn gate_first(
    mut tx: Tx,
    election: &ElectionName,
    lock_timeout: std::time::Duration,
) -> Result<Tx, StoreError> {
    match within(OPERATION, lock_timeout + ENTER, gate(tx.conn(), election)).await {
        Ok(()) => Ok(tx),
        Err(error @ StoreError::TimedOut { .. }) => {
            tx.abandon().await;
            Err(error)
        }
        Err(error) => {
            tx.rollback().await;
            Err(error)
        }
    }
}

async fn gate(connection: &mut PgConnection, election: &ElectionName) -> Result<(), StoreError> {
    sqlx::query(include_str!("sql/act_gate.sql"))
        .bind(election.as_str())
        .execute(connection)
        .await
        .map(|_| ())
        .map_err(at(OPERATION))
}

/// Takes the job over, in a transaction that has entered the fence.
pub(super) async fn take_over(
    connection: &mut PgConnection,
    claim: &Claim,
    job: &JobName,
    from: &ElectionName,
) -> Result<Done<TakeOverOutcome>, StoreError> {
    if *from == claim.election {
        return Ok(Done::RollBack(TakeOverOutcome::NotThere));
    }
    if !comes_first(from, claim) {
        gate(&mut *connection, from).await?;
    }
    // In a statement of its own after the gate.
    if let Some(halt) = fence::read(&mut *connection, OPERATION, from).await?.and_then(|fence| fence.halt) {
        return Ok(Done::RollBack(TakeOverOutcome::Halted(halt)));
    }
    requests(&mut *connection, claim, job, from).await?;
    let row = sqlx::query(include_str!("sql/take_over_lock.sql"))
        .bind(job.as_str())
        .fetch_optional(&mut *connection)
        .await
        .map_err(at(OPERATION))?;
    let Some(row) = row else { return Ok(Done::RollBack(TakeOverOutcome::NotThere)) };
    let there = row.try_get::<&str, _>("election").map_err(at(OPERATION))? == from.as_str()
        && !row.try_get::<bool, _>("removed").map_err(at(OPERATION))?;
    if !there {
        return Ok(Done::RollBack(TakeOverOutcome::NotThere));
    }
    // What was being filed until the row was locked: whoever files holds it. Crossing somebody who executes, it is tried again.
    requests(&mut *connection, claim, job, from).await?;
    let Json(mut definition): Json<JobDefinition> = row.try_get("definition").map_err(at(OPERATION))?;
    definition.election = claim.election.clone();
    let row = sqlx::query(include_str!("sql/take_over_job.sql"))
        .bind(row.try_get::<i64, _>("id").map_err(at(OPERATION))?)
        .bind(claim.election.as_str())
        .bind(Json(&definition))
        .bind(definition.fingerprint())
        .bind(claim.term.get())
        .fetch_one(connection)
        .await
        .map_err(at(OPERATION))?;
    Ok(Done::Commit(TakeOverOutcome::Taken(Box::new(job_of(&row).map_err(at(OPERATION))?))))
}

async fn requests(
    connection: &mut PgConnection,
    claim: &Claim,
    job: &JobName,
    from: &ElectionName,
) -> Result<(), StoreError> {
    sqlx::query(include_str!("sql/take_over_requests.sql"))
        .bind(job.as_str())
        .bind(from.as_str())
        .bind(claim.election.as_str())
        .execute(connection)
        .await
        .map(|_| ())
        .map_err(at(OPERATION))
}

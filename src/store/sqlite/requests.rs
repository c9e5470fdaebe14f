//! Requests of operators: filed by whoever asks, executed by the leader.

use sqlx::Row;
use sqlx::sqlite::{SqliteConnection, SqliteRow};
use uuid::Uuid;

use super::acts::{self, Act};
use super::columns::{election_name, id, id_text, json, json_text, time};
use super::error::at;
use super::tx::Done;
use crate::clock;
use crate::domain::Claim;
use crate::store::readable::{Said, readable};
use crate::store::requests::withdrawn;
use crate::store::{
    Actor, PendingRequest, RequestKind, RequestState, StoreError, WAITING_SHOWN, WaitingRequest, WithdrawOutcome,
};

/// Files a request for the leader of the election that the job or run belongs to.
pub(super) async fn file(
    connection: &mut SqliteConnection,
    kind: &RequestKind,
    actor: &Actor,
    reason: Option<&str>,
) -> Result<Done<Uuid>, StoreError> {
    let operation = "request";
    let (action, target, election) = match kind {
        RequestKind::Trigger { job, .. } | RequestKind::Backfill { job, .. } => {
            let election: Option<String> = sqlx::query_scalar(include_str!("sql/election_of_job.sql"))
                .bind(job.as_str())
                .fetch_optional(&mut *connection)
                .await
                .map_err(at(operation))?;
            (kind.action(), format!("job {job}"), election)
        }
        RequestKind::RetryUnits { run, .. } => {
            let election: Option<String> = sqlx::query_scalar(include_str!("sql/election_of_run.sql"))
                .bind(run)
                .fetch_optional(&mut *connection)
                .await
                .map_err(at(operation))?;
            ("units retry", format!("run {run}"), election)
        }
    };
    let Some(election) = election else {
        return Err(StoreError::Broken { operation, detail: format!("{target} does not exist in the store") });
    };
    let details = serde_json::to_value(kind).ok();
    let act = Act { action, target: &target, reason, election: Some(&election), term: None, details };
    let act = acts::write(connection, operation, actor, act).await?;
    let id = clock::random_id();
    sqlx::query(include_str!("sql/request_insert.sql"))
        .bind(id_text(id))
        .bind(election.as_str())
        .bind(json_text(kind).map_err(at(operation))?)
        .bind(act)
        .execute(connection)
        .await
        .map_err(at(operation))?;
    Ok(Done::Commit(id))
}

/// How a request went.
pub(super) async fn state(
    connection: &mut SqliteConnection,
    request: Uuid,
) -> Result<Option<RequestState>, StoreError> {
    let operation = "request_state";
    let row = sqlx::query(include_str!("sql/request_state.sql"))
        .bind(id_text(request))
        .fetch_optional(connection)
        .await
        .map_err(at(operation))?;
    row.as_ref().map(state_of).transpose().map_err(at(operation))
}

/// The state of a request's row.
pub(super) fn state_of(row: &SqliteRow) -> Result<RequestState, sqlx::Error> {
    match row.try_get::<Option<&str>, _>("result")? {
        Some(_) => json(row, "result"),
        None => Ok(RequestState::Waiting),
    }
}

/// Requests that wait, oldest first, a bounded page.
pub(super) async fn requests(
    connection: &mut SqliteConnection,
    claim: &Claim,
    said: &Said,
) -> Result<Done<Vec<PendingRequest>>, StoreError> {
    let operation = "requests";
    let rows = sqlx::query(include_str!("sql/requests.sql"))
        .bind(claim.election.as_str())
        .fetch_all(connection)
        .await
        .map_err(at(operation))?;
    Ok(Done::RollBack(readable(&rows, request_of, said, "request", |row| row.try_get("name").ok()).0))
}

fn request_of(row: &SqliteRow) -> Result<PendingRequest, sqlx::Error> {
    Ok(PendingRequest { id: id(row, "id")?, kind: json(row, "kind")?, at: time(row, "at")? })
}

/// Requests that wait in any election, oldest first.
pub(super) async fn waiting(connection: &mut SqliteConnection) -> Result<Vec<WaitingRequest>, StoreError> {
    let operation = "waiting_requests";
    let most = i64::try_from(WAITING_SHOWN).unwrap_or(i64::MAX);
    let rows = sqlx::query(include_str!("sql/requests_waiting.sql"))
        .bind(most)
        .fetch_all(connection)
        .await
        .map_err(at(operation))?;
    rows.iter().map(waiting_of).collect::<Result<_, _>>().map_err(at(operation))
}

fn waiting_of(row: &SqliteRow) -> Result<WaitingRequest, sqlx::Error> {
    Ok(WaitingRequest {
        id: id(row, "id")?,
        election: election_name(row, "election")?,
        action: row.try_get("action")?,
        target: row.try_get("target")?,
        asked: json(row, "kind")?,
        reason: row.try_get("reason")?,
        by: row.try_get("by")?,
        at: time(row, "at")?,
    })
}

/// Takes a request back where it still waits: the update decides between this and a leader that executes it.
pub(super) async fn withdraw(
    connection: &mut SqliteConnection,
    request: Uuid,
    reason: &str,
    actor: &Actor,
) -> Result<Done<WithdrawOutcome>, StoreError> {
    let operation = "withdraw_request";
    let election: Option<String> = sqlx::query_scalar(include_str!("sql/request_withdraw.sql"))
        .bind(id_text(request))
        .bind(json_text(&withdrawn(actor, reason)).map_err(at(operation))?)
        .fetch_optional(&mut *connection)
        .await
        .map_err(at(operation))?;
    let Some(election) = election else {
        let answered = state(connection, request).await?;
        return Ok(Done::RollBack(answered.map_or(WithdrawOutcome::NotFound, WithdrawOutcome::Answered)));
    };
    let target = format!("request {request}");
    let act = Act {
        action: "requests withdraw",
        target: &target,
        reason: Some(reason),
        election: Some(&election),
        term: None,
        details: None,
    };
    acts::write(connection, operation, actor, act).await?;
    Ok(Done::Commit(WithdrawOutcome::Withdrawn))
}

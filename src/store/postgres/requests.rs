//! Requests of operators: filed by whoever asks, executed by the leader.

use sqlx::Row;
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::types::Json;
use uuid::Uuid;

use super::acts::{self, Act};
use super::columns::election_name;
use super::error::at;
use super::tx::Done;
use crate::domain::Claim;
use crate::store::readable::{Said, readable};
use crate::store::requests::withdrawn;
use crate::store::{
    Actor, PendingRequest, RequestKind, RequestState, StoreError, WAITING_SHOWN, WaitingRequest, WithdrawOutcome,
};

/// Files a request for the leader of the election that the job or run belongs to.
pub(super) async fn file(
    connection: &mut PgConnection,
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
    let id: Uuid = sqlx::query_scalar(include_str!("sql/request_insert.sql"))
        .bind(election.as_str())
        .bind(Json(kind))
        .bind(act)
        .fetch_one(connection)
        .await
        .map_err(at(operation))?;
    Ok(Done::Commit(id))
}

/// How a request went.
pub(super) async fn state(connection: &mut PgConnection, request: Uuid) -> Result<Option<RequestState>, StoreError> {
    let operation = "request_state";
    let row = sqlx::query(include_str!("sql/request_state.sql"))
        .bind(request)
        .fetch_optional(connection)
        .await
        .map_err(at(operation))?;
    row.as_ref().map(state_of).transpose().map_err(at(operation))
}

/// The state of a request's row.
pub(super) fn state_of(row: &PgRow) -> Result<RequestState, sqlx::Error> {
    let result: Option<Json<RequestState>> = row.try_get("result")?;
    Ok(result.map_or(RequestState::Waiting, |result| result.0))
}

/// Requests that wait, oldest first, a bounded page.
pub(super) async fn requests(
    connection: &mut PgConnection,
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

fn request_of(row: &PgRow) -> Result<PendingRequest, sqlx::Error> {
    let kind: Json<RequestKind> = row.try_get("kind")?;
    Ok(PendingRequest { id: row.try_get("id")?, kind: kind.0, at: row.try_get("at")? })
}

/// Requests that wait in any election, oldest first.
pub(super) async fn waiting(connection: &mut PgConnection) -> Result<Vec<WaitingRequest>, StoreError> {
    let operation = "waiting_requests";
    let most = i64::try_from(WAITING_SHOWN).unwrap_or(i64::MAX);
    let rows = sqlx::query(include_str!("sql/requests_waiting.sql"))
        .bind(most)
        .fetch_all(connection)
        .await
        .map_err(at(operation))?;
    rows.iter().map(waiting_of).collect::<Result<_, _>>().map_err(at(operation))
}

fn waiting_of(row: &PgRow) -> Result<WaitingRequest, sqlx::Error> {
    Ok(WaitingRequest {
        id: row.try_get("id")?,
        election: election_name(row, "election")?,
        action: row.try_get("action")?,
        target: row.try_get("target")?,
        asked: row.try_get::<Json<serde_json::Value>, _>("kind")?.0,
        reason: row.try_get("reason")?,
        by: row.try_get("by")?,
        at: row.try_get("at")?,
    })
}

/// Takes a request back where it still waits: the update decides between this and a leader that executes it.
pub(super) async fn withdraw(
    connection: &mut PgConnection,
    request: Uuid,
    reason: &str,
    actor: &Actor,
) -> Result<Done<WithdrawOutcome>, StoreError> {
    let operation = "withdraw_request";
    let election: Option<String> = sqlx::query_scalar(include_str!("sql/request_withdraw.sql"))
        .bind(request)
        .bind(Json(withdrawn(actor, reason)))
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

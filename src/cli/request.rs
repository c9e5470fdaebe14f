//! Requests: what only a leader may do is asked of it, and waited for, for a bounded time.

use std::time::Duration;

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::context::actor;
use super::error::{CommandError, Exit};
use super::output::Output;
use super::runs;
use crate::clock;
use crate::store::{RequestKind, RequestState, Store, StoreError};

/// How often the request is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Files a request, waits for the leader, and shows the run.
pub(super) async fn ask(
    output: Output,
    store: &dyn Store,
    kind: &RequestKind,
    reason: Option<&str>,
    wait: Duration,
) -> Result<Exit, CommandError> {
    let id = match store.request(kind, &actor(), reason).await {
        Ok(id) => id,
        // The port's word for a job or run that does not exist.
        Err(StoreError::Broken { detail, .. }) => return Err(CommandError::Refused(detail)),
        Err(other) => return Err(other.into()),
    };
    match answer(store, id, wait).await? {
        RequestState::Done { run, units } => {
            if matches!(kind, RequestKind::RetryUnits { .. }) && !output.is_json() {
                output.line(&format!("{units} units of run {run} are tried again"))?;
            }
            runs::show(output, store, run).await?;
            Ok(Exit::Done)
        }
        RequestState::Opened { runs } => {
            opened(output, store, id, &runs).await?;
            Ok(Exit::Done)
        }
        RequestState::Refused { why } => Err(CommandError::Refused(format!("the leader refused request {id}: {why}"))),
        RequestState::Waiting => Err(CommandError::Away(format!(
            "no leader has taken request {id} within {wait:?}. It stays filed and is executed by the next leader of an election \
             that is not halted; see `bursar status` for who leads"
        ))),
    }
}

/// The runs of a backfill, as they are now.
async fn opened(output: Output, store: &dyn Store, id: Uuid, runs: &[i64]) -> Result<(), CommandError> {
    let mut shown = Vec::with_capacity(runs.len());
    for run in runs {
        if let Some(view) = store.run_by_id(*run).await? {
            shown.push(view.summary);
        }
    }
    if output.is_json() {
        return output.json(&serde_json::json!({ "request": id, "runs": shown }));
    }
    output
        .line(&format!("{} runs are opened; they are worked on one after the other, the oldest first", runs.len()))?;
    runs::list(output, "", &shown)
}

/// Looks until the request is answered; a store that is away for a moment is asked again.
async fn answer(store: &dyn Store, id: Uuid, wait: Duration) -> Result<RequestState, CommandError> {
    let until = clock::boottime() + wait;
    loop {
        match store.request_state(id).await {
            Ok(Some(
                done @ (RequestState::Done { .. } | RequestState::Opened { .. } | RequestState::Refused { .. }),
            )) => return Ok(done),
            Ok(Some(RequestState::Waiting)) => {}
            Ok(None) => {
                return Err(CommandError::Internal(anyhow::anyhow!("request {id} is not in the store any more")));
            }
            Err(error) if error.is_passing() && clock::boottime() < until => {}
            Err(error) => return Err(error.into()),
        }
        if clock::boottime() >= until {
            return Ok(RequestState::Waiting);
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Reads a time such as `2027-01-31T17:05:00Z`.
pub(super) fn instant(text: &str) -> Result<DateTime<Utc>, String> {
    let expected = "expected a time in RFC 3339 with its offset such as 2027-01-31T17:05:00Z";
    DateTime::parse_from_rfc3339(text).map(|time| time.to_utc()).map_err(|error| format!("{error}; {expected}"))
}

/// The longest wait.
const LONGEST_WAIT: Duration = Duration::from_hours(1);

/// Reads a bounded wait such as `30s`.
pub(super) fn wait(text: &str) -> Result<Duration, String> {
    let wait = humantime::parse_duration(text).map_err(|error| format!("{error}; expected for example 30s"))?;
    if wait <= LONGEST_WAIT { Ok(wait) } else { Err("at most 1h".to_owned()) }
}

//! Ending sessions on the server from another connection: only that stops what they do. Dropping a future, or closing a
//! socket, does not.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use sqlx::Row;

use super::error::at;
use super::sessions::{Backend, Sessions};
use super::within::within;
use crate::store::{SessionsEnded, StoreError};

/// The pause between two looks at sessions that were told to end. Ending takes 10 to 30 ms.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// Ends sessions and waits until none of them is there, within `budget`.
pub(super) async fn end_backends(
    control: &Arc<Sessions>,
    operation: &'static str,
    backends: &[Backend],
    budget: Duration,
) -> SessionsEnded {
    if backends.is_empty() {
        return SessionsEnded { terminated: 0, confirmed: true };
    }
    let mut told = BTreeSet::new();
    let outcome = within(operation, budget, async {
        let mut held = control.acquire(operation).await?;
        loop {
            let there = signal(&mut held, operation, backends).await?;
            if there.is_empty() {
                held.give_back();
                return Ok(());
            }
            told.extend(there.into_iter().map(|backend| backend.pid));
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    })
    .await;
    if let Err(error) = &outcome {
        tracing::debug!(operation, %error, "ending sessions");
    }
    SessionsEnded { terminated: u32::try_from(told.len()).unwrap_or(u32::MAX), confirmed: outcome.is_ok() }
}

async fn signal(
    held: &mut super::sessions::Held,
    operation: &'static str,
    backends: &[Backend],
) -> Result<Vec<Backend>, StoreError> {
    let pids: Vec<i32> = backends.iter().map(|backend| backend.pid).collect();
    let starts: Vec<DateTime<Utc>> = backends.iter().map(|backend| backend.started).collect();
    let rows = sqlx::query(include_str!("sql/end_backend.sql"))
        .bind(pids)
        .bind(starts)
        .fetch_all(held.connection())
        .await
        .map_err(at(operation))?;
    rows.iter()
        .map(|row| Ok(Backend { pid: row.try_get("pid")?, started: row.try_get("started")? }))
        .collect::<Result<_, sqlx::Error>>()
        .map_err(at(operation))
}

//! Putting a claim in force.
//!
//! The exclusive advisory lock first, in a transaction that does nothing else: it queues fairly, so that transactions of
//! the term before cannot starve it. While it is waited for, a second session ends those that *hold* the lock shared: a
//! paused replica would hold it for ever. An exclusive holder (an operator's halt, another advance) is ended only after a
//! second; a waiter never.
//!
//! The decision is the row count of one upsert. Safe to repeat: a claim that is in force already is accepted again.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use sqlx::Row;
use sqlx::postgres::PgConnection;

use super::error::at;
use super::fence;
use super::refusals::{Refusal, note};
use super::sessions::Backend;
use super::store::{PgStore, finish};
use super::tx::Done;
use super::within::{CONTROL, within};
use crate::domain::Claim;
use crate::store::{AdvanceOutcome, Halt, Leader, StoreError};

const OPERATION: &str = "advance";

/// How long transactions under way may end by themselves before their sessions are ended, and how often it is looked.
const LOOK: Duration = Duration::from_millis(25);

/// How often an exclusive holder is seen before it is ended: for a second at least.
const EXCLUSIVE_LOOKS: u32 = 40;

/// The pause before an advance that the database asked to try again.
const AGAIN: Duration = Duration::from_millis(20);

/// Advances within `bound`.
pub(super) async fn advance(
    store: &PgStore,
    claim: &Claim,
    leader: &Leader,
    bound: Duration,
) -> Result<AdvanceOutcome, StoreError> {
    crate::point!("store.advance.before", failed => StoreError::Unreachable { operation: OPERATION, detail: failed.to_string() });
    within(OPERATION, bound, async {
        // One control session must stay free for ending others.
        let _waiting = store.advancing.acquire().await.map_err(|_closed| StoreError::Ended { operation: OPERATION })?;
        loop {
            let tried = tokio::select! {
                biased;
                tried = attempt(store, claim, leader, bound) => tried,
                never = end_holders(store, claim) => match never {},
            };
            match tried {
                Err(error) if error.is_passing() => {
                    tracing::info!(%claim, %error, "advancing again");
                    tokio::time::sleep(AGAIN).await;
                }
                decided => {
                    if let Ok(AdvanceOutcome::Lost(holder)) = &decided {
                        let (claim, replica) = (claim.clone(), store.replica.clone());
                        let refusal = Refusal { claim, found: Some(*holder), operation: OPERATION, replica };
                        store.notes.spawn(note(Arc::clone(&store.control), refusal));
                    }
                    return decided;
                }
            }
        }
    })
    .await
}

/// One transaction: lock, upsert, history.
async fn attempt(
    store: &PgStore,
    claim: &Claim,
    leader: &Leader,
    bound: Duration,
) -> Result<AdvanceOutcome, StoreError> {
    let mut tx = store.control_tx(OPERATION).await?;
    let worked = decide(tx.conn(), claim, leader, bound).await;
    finish(tx, worked).await
}

async fn decide(
    connection: &mut PgConnection,
    claim: &Claim,
    leader: &Leader,
    bound: Duration,
) -> Result<Done<AdvanceOutcome>, StoreError> {
    if !crate::mutant!("advance.waits-for-nobody") {
        fence::lock_exclusive(connection, OPERATION, claim.election.as_str(), bound).await?;
    }
    crate::point!("store.advance.after_lock", failed => StoreError::Unreachable { operation: OPERATION, detail: failed.to_string() });
    let accepted = sqlx::query(include_str!("sql/advance.sql"))
        .bind(claim.election.as_str())
        .bind(claim.term.get())
        .bind(claim.tenure_id.0)
        .fetch_optional(&mut *connection)
        .await
        .map_err(at(OPERATION))?;
    let Some(row) = accepted else {
        return fence::read(connection, OPERATION, &claim.election).await.and_then(|found| match found {
            Some(found)
                if found.holder.term == claim.term
                    && (found.holder.tenure_id == claim.tenure_id || crate::mutant!("advance.tenure-not-compared")) =>
            {
                Ok(Done::RollBack(AdvanceOutcome::Accepted { halt: found.halt }))
            }
            Some(found) => Ok(Done::RollBack(AdvanceOutcome::Lost(found.holder))),
            None => Err(StoreError::Broken { operation: OPERATION, detail: "the fence row is gone".to_owned() }),
        });
    };
    let halt: Option<Halt> = fence::halt_of(&row).map_err(at(OPERATION))?;
    sqlx::query(include_str!("sql/term_history.sql"))
        .bind(claim.election.as_str())
        .bind(claim.term.get())
        .bind(claim.tenure_id.0)
        .bind(leader.replica.as_str())
        .bind(leader.host.as_str())
        .bind(leader.version.as_str())
        .execute(connection)
        .await
        .map_err(at(OPERATION))?;
    Ok(Done::Commit(AdvanceOutcome::Accepted { halt }))
}

/// Ends, for as long as it is polled, the sessions that hold the election's lock.
async fn end_holders(store: &PgStore, claim: &Claim) -> std::convert::Infallible {
    let mut exclusive = HashMap::new();
    loop {
        tokio::time::sleep(LOOK).await;
        crate::mutant!("advance.ends-no-holder" => continue;);
        if let Err(error) = within(OPERATION, CONTROL, look(store, claim, &mut exclusive)).await {
            tracing::warn!(%claim, %error, "ending the sessions that hold the fence");
        }
    }
}

/// One look: shared holders are ended in the statement that finds them, exclusive ones when they were seen for long enough.
async fn look(store: &PgStore, claim: &Claim, exclusive: &mut HashMap<Backend, u32>) -> Result<(), StoreError> {
    let overdue: Vec<Backend> =
        exclusive.iter().filter(|(_, looks)| **looks >= EXCLUSIVE_LOOKS).map(|(backend, _)| *backend).collect();
    let mut held = store.control.acquire(OPERATION).await?;
    let rows = sqlx::query(include_str!("sql/end_holders.sql"))
        .bind(claim.election.as_str())
        .bind(overdue.iter().map(|backend| backend.pid).collect::<Vec<i32>>())
        .bind(overdue.iter().map(|backend| backend.started).collect::<Vec<DateTime<Utc>>>())
        .fetch_all(held.connection())
        .await
        .map_err(at(OPERATION))?;
    held.give_back();
    let mut still = HashMap::new();
    for row in &rows {
        let pid: i32 = row.try_get("pid").map_err(at(OPERATION))?;
        let started: DateTime<Utc> = row.try_get("started").map_err(at(OPERATION))?;
        let shared: bool = row.try_get("shared").map_err(at(OPERATION))?;
        let signalled: Option<bool> = row.try_get("signalled").map_err(at(OPERATION))?;
        let application: Option<String> = row.try_get("application").map_err(at(OPERATION))?;
        let backend = Backend { pid, started };
        if signalled.is_some() {
            tracing::warn!(%claim, pid, shared, application, "ended a session that held the fence");
        }
        if !shared {
            still.insert(backend, exclusive.get(&backend).copied().unwrap_or(0).saturating_add(1));
        }
    }
    *exclusive = still;
    Ok(())
}

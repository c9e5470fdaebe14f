//! Putting a claim in force.
//!
//! One transaction under the file's write lock, so that none of a lower term's is open beside it. Waits for the lock are not
//! fair but short: a batch has a bound. A replica that stands still inside of one has none: the kernel is asked who holds the
//! lock, and a listed replica that neither computed nor wrote for long enough is ended (see [`super::process`]): soon where it is
//! stopped, after several times the caller's bound where it may be waiting for its disk. What was seen is kept from one advance to
//! the next.
//!
//! The decision is the row count of an UPDATE that names the term, or of an INSERT where there is no row. Safe to repeat: a
//! claim that is in force already is accepted again.

use std::sync::Arc;
use std::time::Duration;

use sqlx::sqlite::SqliteConnection;

use super::columns::id_text;
use super::error::at;
use super::fence;
use super::process::{self, Look};
use super::refusals::{Refusal, note};
use super::store::{SqliteStore, finish};
use super::tx::{self, Done, read};
use super::within::{CONTROL, within};
use crate::clock;
use crate::domain::{Claim, Moment};
use crate::hostproc::{Ending, Holder};
use crate::store::{AdvanceOutcome, Leader, StoreError};

const OPERATION: &str = "advance";

/// The pause before an advance that the store asked to try again.
const AGAIN: Duration = Duration::from_millis(20);

/// How long whoever holds the lock must have stood still, neither computing nor writing, before it is ended, where the kernel
/// says that it is stopped.
const STANDSTILL: Duration = Duration::from_secs(3);

/// The same where the caller has little time: this part of it.
const SHARE: u32 = 3;

/// How many of the caller's bounds (a bound is a TTL) it must have stood still where it is not stopped: it may be waiting for a slow
/// disk, and then it is alive, and goes on.
const BOUNDS_OF_WAITING: u32 = 6;

/// Between two looks at who holds the lock.
const PAUSE: Duration = Duration::from_millis(100);

/// Advances within `bound`.
pub(super) async fn advance(
    store: &SqliteStore,
    claim: &Claim,
    leader: &Leader,
    bound: Duration,
) -> Result<AdvanceOutcome, StoreError> {
    crate::point!("store.advance.before", failed => StoreError::Unreachable { operation: OPERATION, detail: failed.to_string() });
    let mut stranger = None;
    let outcome = within(OPERATION, bound, async {
        loop {
            let tried = tokio::select! {
                biased;
                tried = attempt(store, claim, leader) => tried,
                never = end_holder(store, claim, bound, &mut stranger) => match never {},
            };
            match tried {
                Err(error) if error.is_passing() => {
                    tracing::info!(%claim, %error, "advancing again");
                    tokio::time::sleep(AGAIN).await;
                }
                decided => return decided,
            }
        }
    })
    .await;
    match (outcome, stranger) {
        (Err(StoreError::TimedOut { .. }), Some(detail)) => {
            Err(StoreError::TryAgain { operation: OPERATION, code: super::error::LOCKED.to_owned(), detail })
        }
        (Ok(AdvanceOutcome::Lost(holder)), _) => {
            let (claim, replica) = (claim.clone(), store.replica.clone());
            let refusal = Refusal { claim, found: Some(holder), operation: OPERATION, replica };
            store.notes.spawn(note(Arc::clone(&store.control), refusal));
            Ok(AdvanceOutcome::Lost(holder))
        }
        (outcome, _) => outcome,
    }
}

/// One transaction: lock, fence, history.
async fn attempt(store: &SqliteStore, claim: &Claim, leader: &Leader) -> Result<AdvanceOutcome, StoreError> {
    let mut tx = store.control_tx(OPERATION).await?;
    let listed = if store.file.is_replica() { Some(store.replica.as_str()) } else { None };
    let worked = within(OPERATION, CONTROL, decide(tx.conn(), claim, leader, listed)).await;
    finish(tx, worked).await
}

async fn decide(
    connection: &mut SqliteConnection,
    claim: &Claim,
    leader: &Leader,
    listed: Option<&str>,
) -> Result<Done<AdvanceOutcome>, StoreError> {
    crate::point!("store.advance.after_lock", failed => StoreError::Unreachable { operation: OPERATION, detail: failed.to_string() });
    let mut accepted = 0;
    for statement in [include_str!("sql/advance.sql"), include_str!("sql/advance_first.sql")] {
        if accepted == 0 {
            accepted = sqlx::query(statement)
                .bind(claim.election.as_str())
                .bind(claim.term.get())
                .bind(id_text(claim.tenure_id.0))
                .execute(&mut *connection)
                .await
                .map_err(at(OPERATION))?
                .rows_affected();
        }
    }
    let Some(found) = fence::read(connection, OPERATION, &claim.election).await? else {
        return Err(StoreError::Broken { operation: OPERATION, detail: "the fence row is gone".to_owned() });
    };
    if accepted == 0 {
        let mine = found.holder.term == claim.term && found.holder.tenure_id == claim.tenure_id;
        return Ok(Done::RollBack(if mine {
            AdvanceOutcome::Accepted { halt: found.halt }
        } else {
            AdvanceOutcome::Lost(found.holder)
        }));
    }
    tx::raise(connection, OPERATION).await?;
    if let Some(replica) = listed {
        process::list(connection, OPERATION, replica).await?;
    }
    sqlx::query(include_str!("sql/term_history.sql"))
        .bind(claim.election.as_str())
        .bind(claim.term.get())
        .bind(id_text(claim.tenure_id.0))
        .bind(leader.replica.as_str())
        .bind(leader.host.as_str())
        .bind(leader.version.as_str())
        .execute(connection)
        .await
        .map_err(at(OPERATION))?;
    Ok(Done::Commit(AdvanceOutcome::Accepted { halt: found.halt }))
}

/// Looks, for as long as it is polled, at who holds the write lock, and ends a listed replica that stands still with it.
async fn end_holder(
    store: &SqliteStore,
    claim: &Claim,
    bound: Duration,
    stranger: &mut Option<String>,
) -> std::convert::Infallible {
    loop {
        tokio::time::sleep(PAUSE).await;
        let Some((look, stood)) = store.standing().seen(process::look(store.path()), clock::boottime()) else {
            *stranger = None;
            continue;
        };
        if stood < STANDSTILL.min(bound / SHARE) {
            continue;
        }
        let (holder, spared) = (&look.holder, stood < standstill(look.stopped, bound));
        match within(OPERATION, CONTROL, end(store, holder, spared)).await {
            Ok(None) => {
                *stranger = Some(format!(
                    "{holder} has the file's write lock, is not stopped, and shows no sign of life: it may be waiting for its disk"
                ));
                continue;
            }
            Ok(Some(Ending::Ended)) => {
                tracing::warn!(%claim, %holder, "ended a replica that stood still with the file's write lock");
            }
            Ok(Some(Ending::NotRecorded)) => {
                let detail = format!(
                    "{holder} stands still with the file's write lock and is no replica of this store: end its transaction, \
                     or the process"
                );
                if stranger.as_ref() != Some(&detail) {
                    tracing::warn!(%claim, %holder, "a process that is no replica stands still with the file's write lock");
                }
                *stranger = Some(detail);
            }
            Ok(Some(Ending::Own | Ending::Gone)) => {}
            Err(error) => tracing::warn!(%claim, %error, "ending who holds the file's write lock"),
        }
        // Looked at anew, for as long again.
        store.standing().forget();
    }
}

async fn end(store: &SqliteStore, holder: &Holder, spared: bool) -> Result<Option<Ending>, StoreError> {
    let mut tx = read(&store.control, OPERATION).await?;
    let ended = process::end(tx.conn(), OPERATION, holder, spared).await;
    finish(tx, ended.map(Done::RollBack)).await
}

fn standstill(stopped: bool, bound: Duration) -> Duration {
    if stopped { STANDSTILL.min(bound / SHARE) } else { bound * BOUNDS_OF_WAITING }
}

/// Who was last seen with the lock, and since when it shows no sign of life. What was seen at two looks without one in between
/// counts for the whole time: it has neither computed nor written.
#[derive(Debug, Default)]
pub(super) struct Standing(Option<(Look, Moment)>);

impl Standing {
    /// Takes in a look; answers it, with how long nothing of it has changed.
    fn seen(&mut self, look: Option<Look>, now: Moment) -> Option<(Look, Duration)> {
        let Some(look) = look else {
            self.0 = None;
            return None;
        };
        let since = self.0.take().filter(|(last, _)| *last == look).map_or(now, |(_, since)| since);
        self.0 = Some((look.clone(), since));
        Some((look, now.since(since)))
    }

    fn forget(&mut self) {
        self.0 = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_for_its_disk_has_several_ttls_and_who_is_stopped_has_not() {
        let ttl = Duration::from_secs(5);
        assert!(standstill(true, ttl) < Duration::from_secs(2));
        assert!(standstill(false, ttl) >= ttl * 5);
    }
}

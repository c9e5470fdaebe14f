//! Putting a claim in force.
//!
//! The exclusive advisory lock first, in a transaction that does nothing else: it queues fairly, so that transactions of
//! the term before cannot starve it. While it is waited for, a second session ends those that *hold* the lock shared: a
//! paused replica would hold it for ever. An exclusive holder (an operator's halt, another advance) is ended only after a
//! second; a waiter never. One that this role may not end (an operator's, under a role of its own) is named, once, and in the
//! error where it is still there at the end; it keeps no other from being ended.
//!
//! The decision is the row count of one upsert. Safe to repeat: a claim that is in force already is accepted again.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use sqlx::Row;
use sqlx::postgres::{PgConnection, PgRow};

use super::error::at;
use super::fence;
use super::refusals::{Refusal, note};
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

/// The code under which a holder that cannot be ended is told of: the lock was not available.
const LOCKED: &str = "55P03";

/// Who holds the election's lock: a session, by its transaction.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Holder {
    pid: i32,
    transaction: String,
}

/// What was seen of the holders, look by look.
#[derive(Debug, Default)]
struct Seen {
    /// Those that hold it exclusively, and how often they were seen.
    exclusive: HashMap<Holder, u32>,
    /// Those that had to be ended and may not be, at the last look.
    out_of_reach: Option<String>,
    /// Those, and errors, that the log has been told of.
    told: HashSet<String>,
}

/// Advances within `bound`.
pub(super) async fn advance(
    store: &PgStore,
    claim: &Claim,
    leader: &Leader,
    bound: Duration,
) -> Result<AdvanceOutcome, StoreError> {
    crate::point!("store.advance.before", failed => StoreError::Unreachable { operation: OPERATION, detail: failed.to_string() });
    let mut seen = Seen::default();
    let outcome = within(OPERATION, bound, async {
        // One control session must stay free for ending others.
        let _waiting = store.advancing.acquire().await.map_err(|_closed| StoreError::Ended { operation: OPERATION })?;
        loop {
            let tried = tokio::select! {
                biased;
                tried = attempt(store, claim, leader, bound) => tried,
                never = end_holders(store, claim, &mut seen) => match never {},
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
    .await;
    match (outcome, seen.out_of_reach) {
        (Err(StoreError::TimedOut { .. }), Some(detail)) => {
            Err(StoreError::TryAgain { operation: OPERATION, code: LOCKED.to_owned(), detail })
        }
        (outcome, _) => outcome,
    }
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

/// Ends, for as long as it is polled, the sessions that hold the election's lock while it is waited for. Once the attempt has it,
/// nobody is: a COMMIT that takes its time is not ended, and one without an answer is not taken for a lock that was not to be had.
async fn end_holders(store: &PgStore, claim: &Claim, seen: &mut Seen) -> std::convert::Infallible {
    loop {
        tokio::time::sleep(LOOK).await;
        crate::mutant!("advance.ends-no-holder" => continue;);
        if let Err(error) = within(OPERATION, CONTROL, look(store, claim, seen)).await
            && seen.told.insert(error.to_string())
        {
            tracing::warn!(%claim, %error, "ending the sessions that hold the fence");
        }
    }
}

/// Whether an exclusive holder was seen often enough to be ended.
fn is_overdue(looks: u32) -> bool {
    looks >= EXCLUSIVE_LOOKS && !crate::mutant!("advance.ends-no-exclusive-holder")
}

/// One look: shared holders are ended in the statement that finds them, exclusive ones when they were seen for long enough.
async fn look(store: &PgStore, claim: &Claim, seen: &mut Seen) -> Result<(), StoreError> {
    let overdue: Vec<&Holder> =
        seen.exclusive.iter().filter(|(_, looks)| is_overdue(**looks)).map(|(holder, _)| holder).collect();
    let mut held = store.control.acquire(OPERATION).await?;
    let rows = sqlx::query(include_str!("sql/end_holders.sql"))
        .bind(claim.election.as_str())
        .bind(overdue.iter().map(|holder| holder.pid).collect::<Vec<i32>>())
        .bind(overdue.iter().map(|holder| holder.transaction.clone()).collect::<Vec<String>>())
        .fetch_all(held.connection())
        .await
        .map_err(at(OPERATION))?;
    held.give_back();
    let (mut exclusive, mut out_of_reach) = (HashMap::new(), None);
    for row in &rows {
        let found = Found::of(row).map_err(at(OPERATION))?;
        if found.signalled {
            let (pid, shared, application) = (found.holder.pid, found.shared, found.application.as_deref());
            tracing::warn!(%claim, pid, shared, application, "ended a session that held the fence");
        }
        if found.due && !found.permitted {
            let words = found.out_of_reach();
            if seen.told.insert(words.clone()) {
                tracing::error!(%claim, "{words}");
            }
            out_of_reach = Some(words);
        }
        if !found.shared {
            let looks = seen.exclusive.get(&found.holder).copied().unwrap_or(0).saturating_add(1);
            exclusive.insert(found.holder, looks);
        }
    }
    (seen.exclusive, seen.out_of_reach) = (exclusive, out_of_reach);
    Ok(())
}

/// One holder, as a look found it.
#[expect(clippy::struct_excessive_bools, reason = "a row of end_holders.sql, column by column")]
struct Found {
    holder: Holder,
    application: Option<String>,
    role: Option<String>,
    shared: bool,
    due: bool,
    permitted: bool,
    signalled: bool,
}

impl Found {
    fn of(row: &PgRow) -> Result<Self, sqlx::Error> {
        Ok(Self {
            holder: Holder { pid: row.try_get("pid")?, transaction: row.try_get("transaction")? },
            application: row.try_get("application")?,
            role: row.try_get("role")?,
            shared: row.try_get("shared")?,
            due: row.try_get("due")?,
            permitted: row.try_get("permitted")?,
            signalled: row.try_get::<Option<bool>, _>("signalled")?.is_some(),
        })
    }

    fn out_of_reach(&self) -> String {
        format!(
            "the session with pid {} of role {} holds the fence, and this role may not end it: grant pg_signal_backend to this \
             role, or end that session",
            self.holder.pid,
            self.role.as_deref().unwrap_or("(dropped)")
        )
    }
}

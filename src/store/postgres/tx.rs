//! One transaction: BEGIN, the fence's answer, what the operation does, COMMIT or ROLLBACK.
//!
//! Invariants:
//! - READ COMMITTED is said explicitly: the role's default may be another, under which the fence could not be read afresh.
//! - What begins something is admitted right before BEGIN: no wait stands between the two.
//! - The fence is entered before any savepoint: a rollback to a savepoint gives back the locks taken after it.
//! - Before COMMIT the statement time-out is lifted, and nobody cancels. A COMMIT without a definite answer is
//!   [`StoreError::Unknown`], and its session is ended first, so that whoever reads the state again reads the final one;
//!   where it could not be seen gone, the next transaction begins only once it is.
//! - A transaction dropped half way closes its session.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use futures_util::FutureExt;
use sqlx::Row;
use sqlx::postgres::{PgConnection, PgRow};
use uuid::Uuid;

use super::end::end_backends;
use super::error::{at, commit_fault, fault};
use super::notices::with_warnings;
use super::sessions::{Held, Sessions};
use super::within::{ABANDON, COMMIT, ENTER, ROLLBACK, within};
use crate::domain::{Claim, TenureId, Term};
use crate::store::{Admission, Entered, FenceHolder, Halt, StoreError};

/// The kinds of fenced transaction that a tenure makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Refused where the election is halted.
    Begin,
    /// The outcome of what had left before; allowed where halted.
    Record,
}

impl Kind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Begin if crate::mutant!("halt.passed-over") => "record",
            Self::Record if crate::mutant!("halt.keeps-outcomes-out") => "begin",
            Self::Begin => "begin",
            Self::Record => "record",
        }
    }
}

/// What an operation's statements came to, and so whether they count.
#[derive(Debug)]
pub(super) enum Done<T> {
    /// Commit, then answer.
    Commit(T),
    /// Nothing was written, or nothing of it shall count.
    RollBack(T),
}

impl<T> Done<T> {
    /// The answer, where another operation decides what counts.
    pub(super) fn into_inner(self) -> T {
        match self {
            Self::Commit(answer) | Self::RollBack(answer) => answer,
        }
    }
}

/// An open transaction on a session of its own.
#[derive(Debug)]
pub(super) struct Tx {
    held: Held,
    control: Arc<Sessions>,
    operation: &'static str,
}

/// A transaction that has entered the fence: the claim was in force, and nobody advances while it lives.
pub(super) type FencedTx = Tx;

/// Begins a transaction. A session that died while it was idle is replaced, without a word.
///
/// `admission` is asked with a session in hand, right before BEGIN. While it is waited for the session serves others:
/// outcomes are recorded also while nothing may begin.
pub(super) async fn begin(
    sessions: &Arc<Sessions>,
    control: &Arc<Sessions>,
    operation: &'static str,
    statement: &'static str,
    admission: Option<&dyn Admission>,
) -> Result<Tx, StoreError> {
    see_gone(sessions, control, operation).await?;
    loop {
        let mut held = sessions.acquire(operation).await?;
        if let Some(admission) = admission
            && admission.admitted().now_or_never() != Some(true)
            && !crate::mutant!("gate.not-asked-before-begin")
        {
            held.give_back();
            if admission.admitted().await {
                continue;
            }
            return Err(StoreError::Ended { operation });
        }
        let begun = within(operation, ENTER, async {
            sqlx::raw_sql(statement).execute(held.connection()).await.map(|_| ()).map_err(at(operation))
        })
        .await;
        match begun {
            Ok(()) => return Ok(Tx { held, control: Arc::clone(control), operation }),
            // Each turn uses up one idle session, of which there are finitely many.
            Err(error) if held.reused && !sessions.is_closed() => {
                tracing::debug!(operation, %error, "an idle session was dead");
            }
            Err(error) => return Err(error),
        }
    }
}

/// Sees the sessions gone whose end could not be seen before: what they have under way may still be committed, so nothing
/// is read again, decided or begun beside them.
async fn see_gone(
    sessions: &Arc<Sessions>,
    control: &Arc<Sessions>,
    operation: &'static str,
) -> Result<(), StoreError> {
    let unseen = sessions.unseen();
    if unseen.is_empty() {
        return Ok(());
    }
    if !end_backends(control, operation, &unseen, ABANDON).await.confirmed {
        let detail = "an earlier session whose transaction may be under way could not be seen to end".to_owned();
        return Err(StoreError::Unreachable { operation, detail });
    }
    for backend in unseen {
        sessions.forget(backend);
    }
    Ok(())
}

/// BEGIN of every transaction that writes.
pub(super) const READ_COMMITTED: &str = "begin isolation level read committed";

/// BEGIN of a report that must see one state.
pub(super) const ONE_SNAPSHOT: &str = "begin isolation level repeatable read read only";

/// Enters the fence. `Fenced` and `Halted` come back after the rollback.
pub(super) async fn enter(
    mut tx: Tx,
    claim: &Claim,
    kind: Kind,
    lock_timeout: Duration,
) -> Result<Entered<FencedTx>, StoreError> {
    let operation = tx.operation;
    crate::mutant!("fence.behind-a-savepoint" => sqlx::raw_sql("savepoint s").execute(tx.conn()).await.map_err(at(operation))?;);
    let asked = within(operation, lock_timeout + ENTER, async {
        let row = sqlx::query(crate::sql!("sql/enter.sql"))
            .bind(claim.election.as_str())
            .bind(claim.term.get())
            .bind(claim.tenure_id.0)
            .bind(kind.as_str())
            .fetch_one(tx.conn())
            .await
            .map_err(at(operation))?;
        Answer::read(&row).map_err(at(operation))
    })
    .await
    .map_err(waited_in_vain);
    let answer = match asked {
        Ok(answer) => answer,
        Err(error @ StoreError::TimedOut { .. }) => {
            tx.abandon().await;
            return Err(error);
        }
        Err(error) => {
            tx.rollback().await;
            return Err(error);
        }
    };
    crate::mutant!("fence.behind-a-savepoint" => sqlx::raw_sql("rollback to savepoint s").execute(tx.conn()).await.map_err(at(operation))?;);
    if answer.backend != tx.held.backend().pid {
        tx.rollback().await;
        return Err(StoreError::Unfit { detail: super::fitness::POOLER.to_owned() });
    }
    match (answer.outcome.as_str(), answer.halt) {
        ("mine", _) => {
            crate::point!("store.enter.after");
            Ok(Entered::Mine(tx))
        }
        ("fenced", _) => {
            tx.rollback().await;
            Ok(Entered::Fenced(answer.found))
        }
        ("halted", Some(halt)) => {
            tx.rollback().await;
            Ok(Entered::Halted(halt))
        }
        (other, _) => {
            tx.rollback().await;
            Err(StoreError::Broken { operation, detail: format!("the fence answered {other:?}") })
        }
    }
}

/// A statement time-out that is met at the gate ends a wait for a lock, whatever its name: no verdict on anything.
fn waited_in_vain(error: StoreError) -> StoreError {
    match error {
        StoreError::StatementTimeout { operation, detail } => {
            StoreError::TryAgain { operation, code: "55P03".to_owned(), detail }
        }
        other => other,
    }
}

/// What `bursar.enter` answered.
struct Answer {
    outcome: String,
    found: Option<FenceHolder>,
    halt: Option<Halt>,
    backend: i32,
}

impl Answer {
    fn read(row: &PgRow) -> Result<Self, sqlx::Error> {
        let term: Option<i64> = row.try_get("found_term")?;
        let tenure: Option<Uuid> = row.try_get("found_tenure")?;
        let since: Option<DateTime<Utc>> = row.try_get("halted_at")?;
        let halt = match since {
            Some(since) => Some(Halt { reason: row.try_get("halt_reason")?, since, by: row.try_get("halted_by")? }),
            None => None,
        };
        Ok(Self {
            outcome: row.try_get("outcome")?,
            found: holder(term, tenure),
            halt,
            backend: row.try_get("backend")?,
        })
    }
}

/// The holder of a fence row.
pub(super) fn holder(term: Option<i64>, tenure: Option<Uuid>) -> Option<FenceHolder> {
    Some(FenceHolder { term: Term::new(term?)?, tenure_id: TenureId(tenure?) })
}

impl Tx {
    /// The connection, inside of the transaction.
    pub(super) fn conn(&mut self) -> &mut PgConnection {
        self.held.connection()
    }

    /// Commits.
    ///
    /// # Errors
    /// [`StoreError::Unknown`] where the answer is missing or not definite; the session is ended before.
    /// Else the server says that it rolled back.
    pub(super) async fn commit(mut self) -> Result<(), StoreError> {
        let operation = self.operation;
        crate::point!("store.commit.before", in operation, failed => self.lost(&failed).await);
        // In one message, so that lifting the time-out costs no round trip; in a failed transaction the first of them
        // fails, and COMMIT cannot turn into a silent ROLLBACK.
        let answered = within(operation, COMMIT, async {
            let commit = sqlx::raw_sql("set local statement_timeout = 0; commit").execute(self.held.connection());
            match with_warnings(commit).await {
                (Ok(_), None) => Ok(()),
                (Ok(_), Some(warning)) => Err(StoreError::Unknown { operation, detail: warning }),
                (Err(error), _) => Err(commit_fault(operation, &error)),
            }
        })
        .await;
        crate::point!("store.commit.after", in operation, failed => self.lost(&failed).await);
        tracing::trace!(operation, ok = answered.is_ok(), "commit");
        match answered {
            Ok(()) => {
                self.held.give_back();
                Ok(())
            }
            Err(StoreError::TimedOut { within, .. }) => {
                self.abandon().await;
                Err(StoreError::Unknown { operation, detail: format!("no answer within {within:?}") })
            }
            Err(error @ StoreError::Unknown { .. }) => {
                self.abandon().await;
                crate::mutant!("commit.unknown-taken-for-failed" => return Err(StoreError::TryAgain { operation, code: String::new(), detail: String::new() }););
                Err(error)
            }
            // The server has rolled back. Whether its session is inside of a transaction still depends on what failed;
            // rare enough to take another session.
            Err(definite) => Err(definite),
        }
    }

    /// A COMMIT whose answer a failpoint swallows, whether it was sent or not.
    #[cfg(feature = "chaos")]
    async fn lost(self, failed: &crate::chaos::Failed) -> StoreError {
        let operation = self.operation;
        self.abandon().await;
        StoreError::Unknown { operation, detail: failed.to_string() }
    }

    /// Rolls back, or ends the session where the server does not answer in time.
    pub(super) async fn rollback(mut self) {
        let operation = self.operation;
        let answered = within(operation, ROLLBACK, async {
            sqlx::raw_sql("rollback")
                .execute(self.held.connection())
                .await
                .map(|_| ())
                .map_err(|error| fault(operation, &error))
        })
        .await;
        match answered {
            Ok(()) => self.held.give_back(),
            Err(StoreError::TimedOut { .. }) => self.abandon().await,
            // The session is gone, and the transaction with it.
            Err(error) => tracing::debug!(operation, %error, "rollback"),
        }
    }

    /// Ends the session from another connection and waits until it is gone, as long as the bound allows. Past it, the next
    /// transaction of these sessions waits for that first.
    pub(super) async fn abandon(self) {
        let Self { held, control, operation } = self;
        let backend = held.backend();
        let sessions = held.sessions();
        let place = held.disconnect();
        let ended = end_backends(&control, operation, &[backend], ABANDON).await;
        drop(place);
        if ended.confirmed {
            sessions.forget(backend);
        } else {
            sessions.not_seen_gone(backend);
            tracing::warn!(operation, pid = backend.pid, "a session with an open transaction could not be seen to end");
        }
    }
}

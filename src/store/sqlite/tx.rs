//! One transaction: BEGIN, the fence's answer, what the operation does, COMMIT or ROLLBACK.
//!
//! Invariants:
//! - Whoever writes begins with BEGIN IMMEDIATE and so holds the file's one write lock: a fence that is read then stays as
//!   it was read until the end. Nobody advances, halts or resumes beside it.
//! - What begins something is admitted right before BEGIN, and again once SQLite has waited for the lock.
//! - A transaction that only reads sees one snapshot, the fence included, and waits for nobody.
//! - Before COMMIT the watch is lifted, and nobody cancels. Where SQLite does not answer it, or answers that the disk failed
//!   it, the outcome is [`StoreError::Unknown`], and whoever reads the state again does so under the write lock, which the old
//!   connection gives up only with its outcome. Every other answer is definite.
//! - A transaction dropped half way is interrupted, and its session closed.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use sqlx::Row;
use sqlx::sqlite::{SqliteConnection, SqliteRow};

use super::columns::{maybe_holder, maybe_time};
use super::error::{DISK_FAULT, LOCKED, at, fault, is_busy};
use super::sessions::{Held, Sessions};
use super::within::{BUSY_PAUSE, COMMIT, ENTER, ROLLBACK, within};
use crate::clock;
use crate::domain::{Claim, Moment};
use crate::hostproc;
use crate::store::{Admission, Entered, FenceHolder, Halt, StoreError};

/// The kinds of fenced transaction that a tenure makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Refused where the election is halted.
    Begin,
    /// The outcome of what had left before; allowed where halted.
    Record,
}

/// What an operation's statements came to, and so whether they count.
#[derive(Debug)]
pub(super) enum Done<T> {
    /// Commit, then answer.
    Commit(T),
    /// Nothing was written, or nothing of it shall count.
    RollBack(T),
}

/// An open transaction on a session of its own.
#[derive(Debug)]
pub(super) struct Tx {
    held: Held,
    operation: &'static str,
    writes: bool,
}

/// A transaction that has entered the fence: the claim was in force, and nobody advances while it lives.
pub(super) type FencedTx = Tx;

/// Begins a transaction that writes: the file's write lock is held from here on.
///
/// # Errors
/// [`StoreError::TryAgain`] where the lock is not to be had within the sessions' bound; [`StoreError::Ended`].
pub(super) async fn begin_immediate(sessions: &Arc<Sessions>, operation: &'static str) -> Result<Tx, StoreError> {
    let started = clock::boottime();
    loop {
        if let Some(tx) = begin_once(sessions, operation).await? {
            return Ok(tx);
        }
        wait_for_lock(sessions, operation, started).await?;
    }
}

/// The same for what begins something. `admission` is asked with a session in hand, right before BEGIN, and once more with
/// the lock in hand, before anything is done under it: SQLite's own wait lies in between. While admission is waited for,
/// session and lock serve others: outcomes are recorded also while nothing may begin.
pub(super) async fn begin_admitted(
    sessions: &Arc<Sessions>,
    operation: &'static str,
    writes: bool,
    admission: &dyn Admission,
) -> Result<Tx, StoreError> {
    let mut started = clock::boottime();
    loop {
        let held = sessions.acquire(operation).await?;
        if is_admitted(admission) {
            let begun =
                if writes { try_lock(held, operation).await? } else { Some(begin_read(held, operation).await?) };
            match begun {
                Some(tx) if is_admitted(admission) => return Ok(tx),
                Some(tx) => tx.rollback().await,
                None => {
                    wait_for_lock(sessions, operation, started).await?;
                    continue;
                }
            }
        } else {
            held.give_back();
        }
        if !admission.admitted().await {
            return Err(StoreError::Ended { operation });
        }
        started = clock::boottime();
    }
}

fn is_admitted(admission: &dyn Admission) -> bool {
    admission.admitted().now_or_never() == Some(true)
}

/// A pause after the lock was not to be had.
async fn wait_for_lock(sessions: &Arc<Sessions>, operation: &'static str, started: Moment) -> Result<(), StoreError> {
    if sessions.is_closed() {
        return Err(StoreError::Ended { operation });
    }
    let waited = clock::boottime().since(started);
    if waited < sessions.write_lock_within() {
        pause().await;
        return Ok(());
    }
    let holder = hostproc::write_lock_holder(sessions.path()).ok().flatten();
    let who = holder.map_or_else(String::new, |holder| format!("; {holder} holds it now"));
    Err(locked_out(operation, waited, &who))
}

fn locked_out(operation: &'static str, waited: Duration, who: &str) -> StoreError {
    let detail = format!(
        "another connection has held the file's write lock for {waited:?}: a long transaction, or a process that stands \
         still in one{who}"
    );
    StoreError::TryAgain { operation, code: LOCKED.to_owned(), detail }
}

/// The same, asking once; `None` where another connection has the lock.
pub(super) async fn begin_once(sessions: &Arc<Sessions>, operation: &'static str) -> Result<Option<Tx>, StoreError> {
    let held = sessions.acquire(operation).await?;
    try_lock(held, operation).await
}

async fn try_lock(mut held: Held, operation: &'static str) -> Result<Option<Tx>, StoreError> {
    match sqlx::raw_sql("begin immediate").execute(held.connection()).await {
        Ok(_) => Ok(Some(Tx { held, operation, writes: true })),
        Err(error) if is_busy(&error) => {
            held.give_back();
            Ok(None)
        }
        Err(error) => Err(fault(operation, &error)),
    }
}

/// Begins a transaction that reads one snapshot, and writes nothing.
pub(super) async fn read(sessions: &Arc<Sessions>, operation: &'static str) -> Result<Tx, StoreError> {
    begin_read(sessions.acquire(operation).await?, operation).await
}

async fn begin_read(mut held: Held, operation: &'static str) -> Result<Tx, StoreError> {
    sqlx::raw_sql("begin").execute(held.connection()).await.map_err(at(operation))?;
    Ok(Tx { held, operation, writes: false })
}

/// Takes the file's write lock on a connection outside of any set, asking again until `bound` is over: SQLite's own wait is
/// short, for nobody could interrupt it.
pub(super) async fn lock(
    connection: &mut SqliteConnection,
    operation: &'static str,
    bound: Duration,
) -> Result<(), StoreError> {
    let started = clock::boottime();
    loop {
        match sqlx::raw_sql("begin immediate").execute(&mut *connection).await {
            Ok(_) => return Ok(()),
            Err(error) if is_busy(&error) => {
                let waited = clock::boottime().since(started);
                if waited >= bound {
                    return Err(locked_out(operation, waited, ""));
                }
                pause().await;
            }
            Err(error) => return Err(fault(operation, &error)),
        }
    }
}

/// A random pause before a lock is asked for again.
pub(super) async fn pause() {
    let most = u64::try_from(BUSY_PAUSE.as_micros()).unwrap_or(1).max(1);
    tokio::time::sleep(Duration::from_micros(clock::random_u64() % most)).await;
}

/// Enters the fence. `Fenced` and `Halted` come back after the rollback. A transaction that writes raises the sequence of
/// fenced transactions, which orders them for the audit.
pub(super) async fn enter(mut tx: Tx, claim: &Claim, kind: Kind) -> Result<Entered<FencedTx>, StoreError> {
    let operation = tx.operation;
    let asked = within(operation, ENTER, ask(&mut tx, claim, kind)).await;
    match asked {
        Ok(Answer::Mine) => {
            crate::point!("store.enter.after");
            Ok(Entered::Mine(tx))
        }
        Ok(Answer::Fenced(found)) => {
            tx.rollback().await;
            Ok(Entered::Fenced(found))
        }
        Ok(Answer::Halted(halt)) => {
            tx.rollback().await;
            Ok(Entered::Halted(halt))
        }
        Err(error @ StoreError::TimedOut { .. }) => {
            tx.abandon().await;
            Err(error)
        }
        // Reading one row is no work of anybody's: what interrupted it is no verdict.
        Err(StoreError::StatementTimeout { operation, detail }) => {
            tx.rollback().await;
            Err(StoreError::TryAgain { operation, code: LOCKED.to_owned(), detail })
        }
        Err(error) => {
            tx.rollback().await;
            Err(error)
        }
    }
}

async fn ask(tx: &mut Tx, claim: &Claim, kind: Kind) -> Result<Answer, StoreError> {
    let operation = tx.operation;
    let row = sqlx::query(include_str!("sql/fence.sql"))
        .bind(claim.election.as_str())
        .fetch_optional(tx.conn())
        .await
        .map_err(at(operation))?;
    let found = row.as_ref().map(Found::read).transpose().map_err(at(operation))?;
    let answer = Answer::to(claim, kind, found);
    if answer == Answer::Mine && tx.writes {
        raise(tx.conn(), operation).await?;
    }
    Ok(answer)
}

/// Raises the sequence of fenced transactions.
pub(super) async fn raise(connection: &mut SqliteConnection, operation: &'static str) -> Result<(), StoreError> {
    sqlx::query(include_str!("sql/fenced_seq_raise.sql")).execute(connection).await.map(|_| ()).map_err(at(operation))
}

/// A row of the fence.
struct Found {
    holder: Option<FenceHolder>,
    halt: Option<Halt>,
}

impl Found {
    fn read(row: &SqliteRow) -> Result<Self, sqlx::Error> {
        Ok(Self { holder: maybe_holder(row, "term", "tenure_id")?, halt: halt_of(row)? })
    }
}

/// The halt of a row of the fence.
pub(super) fn halt_of(row: &SqliteRow) -> Result<Option<Halt>, sqlx::Error> {
    match maybe_time(row, "halted_at")? {
        Some(since) => Ok(Some(Halt { reason: row.try_get("halt_reason")?, since, by: row.try_get("halted_by")? })),
        None => Ok(None),
    }
}

/// What the fence answers.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Mine,
    Fenced(Option<FenceHolder>),
    Halted(Halt),
}

impl Answer {
    fn to(claim: &Claim, kind: Kind, found: Option<Found>) -> Self {
        let Some(Found { holder: Some(holder), halt }) = found else { return Self::Fenced(None) };
        let is_mine = holder.tenure_id == claim.tenure_id || crate::mutant!("sqlite.tenure-not-compared");
        if holder.term != claim.term || !is_mine {
            return Self::Fenced(Some(holder));
        }
        match (kind, halt) {
            (Kind::Begin, Some(halt)) => Self::Halted(halt),
            (Kind::Begin, None) | (Kind::Record, _) => Self::Mine,
        }
    }
}

impl Tx {
    /// The connection, inside of the transaction.
    pub(super) fn conn(&mut self) -> &mut SqliteConnection {
        self.held.connection()
    }

    /// What it is for.
    pub(super) fn operation(&self) -> &'static str {
        self.operation
    }

    /// Whether the sessions that it belongs to were closed meanwhile.
    pub(super) fn is_ended(&self) -> bool {
        self.held.sessions().is_closed()
    }

    /// Commits.
    ///
    /// # Errors
    /// [`StoreError::Unknown`] where SQLite did not answer in time, or the disk failed it; else nothing was written.
    pub(super) async fn commit(mut self) -> Result<(), StoreError> {
        let operation = self.operation;
        crate::point!("store.commit.before", in operation, failed => self.lost(&failed).await);
        self.held.disarm();
        let answered = within(operation, COMMIT, async {
            sqlx::raw_sql("commit").execute(self.held.connection()).await.map_err(at(operation))
        })
        .await;
        crate::point!("store.commit.after", in operation, failed => self.lost(&failed).await);
        tracing::trace!(operation, ok = answered.is_ok(), "commit");
        match answered {
            Ok(_) => {
                self.held.give_back();
                Ok(())
            }
            Err(StoreError::TimedOut { within, .. }) => {
                self.abandon().await;
                Err(StoreError::Unknown { operation, detail: format!("no answer within {within:?}") })
            }
            // The connection's thread is gone: whether it had written the last frame is not known.
            Err(StoreError::Unreachable { detail, .. }) => {
                self.abandon().await;
                Err(StoreError::Unknown { operation, detail })
            }
            // The last frame may be in the log's file, and only the sync after it have failed: nobody sees it now, but after
            // a crash the log would be read with it.
            Err(StoreError::TryAgain { code, detail, .. }) if code == DISK_FAULT => {
                self.abandon().await;
                Err(StoreError::Unknown { operation, detail })
            }
            // SQLite says that it did not commit; some errors leave the transaction open.
            Err(definite) => {
                self.rollback().await;
                Err(definite)
            }
        }
    }

    /// A COMMIT whose answer a failpoint swallows, whether it was sent or not.
    #[cfg(feature = "chaos")]
    async fn lost(self, failed: &crate::chaos::Failed) -> StoreError {
        let operation = self.operation;
        self.abandon().await;
        StoreError::Unknown { operation, detail: failed.to_string() }
    }

    /// Rolls back, or closes the session where SQLite does not answer in time.
    pub(super) async fn rollback(mut self) {
        let operation = self.operation;
        self.held.disarm();
        let answered = within(operation, ROLLBACK, async {
            sqlx::raw_sql("rollback").execute(self.held.connection()).await.map_err(at(operation))
        })
        .await;
        match answered {
            Ok(_) => self.held.give_back(),
            Err(StoreError::TimedOut { .. }) => self.abandon().await,
            // Some errors roll back by themselves. The session is dropped, and whatever is left of it.
            Err(error) => {
                tracing::debug!(operation, %error, "rollback");
                self.abandon().await;
            }
        }
    }

    /// Interrupts what runs, closes the session and waits until it is gone, as long as the bound allows.
    pub(super) async fn abandon(self) {
        let operation = self.operation;
        if !self.held.abandon().await {
            tracing::warn!(operation, "a connection with an open transaction could not be seen to close");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{ElectionName, TenureId, Term};

    #[test]
    fn the_fence_answers_by_term_and_tenure_and_halt() {
        let tenure = |n: u128| TenureId(uuid::Uuid::from_u128(n));
        let term = |n| Term::new(n).expect("a term");
        let claim = Claim { election: ElectionName::new("main").expect("a name"), term: term(3), tenure_id: tenure(1) };
        let halt = Halt { reason: "a drill".to_owned(), since: chrono::DateTime::UNIX_EPOCH, by: "me".to_owned() };
        let found = |n, t, halt: Option<&Halt>| {
            let holder = FenceHolder { term: term(n), tenure_id: tenure(t) };
            Some(Found { holder: Some(holder), halt: halt.cloned() })
        };
        assert_eq!(Answer::to(&claim, Kind::Begin, None), Answer::Fenced(None));
        assert_eq!(Answer::to(&claim, Kind::Begin, found(3, 1, None)), Answer::Mine);
        assert_eq!(Answer::to(&claim, Kind::Begin, found(3, 1, Some(&halt))), Answer::Halted(halt.clone()));
        assert_eq!(Answer::to(&claim, Kind::Record, found(3, 1, Some(&halt))), Answer::Mine);
        for (other_term, other_tenure) in [(4, 1), (2, 1), (3, 2)] {
            let holder = FenceHolder { term: term(other_term), tenure_id: tenure(other_tenure) };
            let answer = Answer::to(&claim, Kind::Record, found(other_term, other_tenure, Some(&halt)));
            assert_eq!(answer, Answer::Fenced(Some(holder)), "a halt hides no refusal");
        }
    }
}

//! Sessions with the file: a small set of connections, each with its own thread and its own watch.
//!
//! Why not the driver's pool: what a tenure's connections run must be interrupted when the tenure ends, and be seen gone;
//! and a connection whose transaction was dropped half way must never be lent again.
//!
//! Invariants:
//! - A session is lent to one holder. It comes back only by [`Held::give_back`], after a finished transaction; dropped in
//!   any other way what it runs is interrupted and it is closed, which rolls back.
//! - After [`Sessions::close`] none is lent or opened, and what runs is interrupted, but for a COMMIT.
//! - None is lent once the path names another file than the one that is open, or none.
//! - Every session has foreign keys and `synchronous = FULL`, asked for and looked at.
//!
//! Deliberately absent: background tasks and retries.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sqlx::Row;
use sqlx::sqlite::SqliteConnection;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use super::error::at;
use super::file::File;
use super::lineage::Baseline;
use super::watch::{Ended, STEPS, Watch};
use super::within::{ABANDON, COMMAND, CONNECT, CONTROL, WRITE_LOCK, WRITE_LOCK_COMMAND, within};
use crate::store::{StoreError, TenureLimits};

/// What sessions are for; decides their bounds.
#[derive(Debug, Clone)]
pub(super) enum Purpose {
    /// Eligibility, the fence, status, refusals.
    Control,
    /// One command with one long transaction.
    Command,
    /// The transactions of one tenure.
    Tenure { limits: TenureLimits, baseline: Arc<Baseline> },
}

/// A bounded set of sessions.
#[derive(Debug)]
pub(super) struct Sessions {
    file: Arc<File>,
    purpose: Purpose,
    permits: Arc<Semaphore>,
    acquire_timeout: Duration,
    idle: Mutex<Vec<Session>>,
    alive: Arc<Alive>,
    ended: Ended,
}

/// Connections that SQLite has not closed yet.
#[derive(Debug, Default)]
struct Alive {
    count: AtomicU64,
    gone: Notify,
}

impl Alive {
    /// Waits until that connection is seen gone, at most [`ABANDON`].
    async fn saw(&self, closed: &AtomicBool) -> bool {
        let seen = async {
            loop {
                let next = self.gone.notified();
                if closed.load(Ordering::SeqCst) {
                    return;
                }
                next.await;
            }
        };
        tokio::time::timeout(ABANDON, seen).await.is_ok()
    }
}

/// Belongs to one connection, inside of SQLite; dropped when that has been closed and what it had open is rolled back.
#[derive(Debug)]
struct Token {
    alive: Arc<Alive>,
    closed: Arc<AtomicBool>,
}

impl Drop for Token {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::SeqCst);
        self.alive.count.fetch_sub(1, Ordering::SeqCst);
        self.alive.gone.notify_waiters();
    }
}

#[derive(Debug)]
struct Session {
    connection: SqliteConnection,
    watch: Arc<Watch>,
    closed: Arc<AtomicBool>,
}

/// A session that is lent. Dropping it interrupts what it runs and closes it.
#[derive(Debug)]
pub(super) struct Held {
    session: Option<Session>,
    sessions: Arc<Sessions>,
    _permit: OwnedSemaphorePermit,
}

fn open_lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics under these locks, and what they hold is whole at any time.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sessions {
    pub(super) fn new(file: Arc<File>, most: u32, acquire_timeout: Duration, purpose: Purpose) -> Arc<Self> {
        let permits = usize::try_from(most.max(1)).unwrap_or(1);
        Arc::new(Self {
            file,
            purpose,
            permits: Arc::new(Semaphore::new(permits)),
            acquire_timeout,
            idle: Mutex::new(Vec::new()),
            alive: Arc::default(),
            ended: Ended::default(),
        })
    }

    /// Lends a session, opening one where none is idle.
    ///
    /// # Errors
    /// [`StoreError::Ended`] after [`Self::close`]; [`StoreError::TimedOut`] where none comes free; those of opening.
    pub(super) async fn acquire(self: &Arc<Self>, operation: &'static str) -> Result<Held, StoreError> {
        let waited = tokio::time::timeout(self.acquire_timeout, Arc::clone(&self.permits).acquire_owned()).await;
        let permit = match waited {
            Ok(Ok(permit)) => permit,
            Ok(Err(_closed)) => return Err(StoreError::Ended { operation }),
            Err(_) => return Err(StoreError::TimedOut { operation, within: self.acquire_timeout }),
        };
        self.file.still_there(operation)?;
        let idle = open_lock(&self.idle).pop();
        let session = match idle {
            Some(session) => session,
            None => within(operation, CONNECT, Box::pin(self.open(operation))).await?,
        };
        let held = Held { session: Some(session), sessions: Arc::clone(self), _permit: permit };
        if self.is_closed() {
            return Err(StoreError::Ended { operation });
        }
        held.arm();
        Ok(held)
    }

    async fn open(&self, operation: &'static str) -> Result<Session, StoreError> {
        self.file.make_ready(operation).await?;
        let mut connection = self.file.connect(operation).await?;
        // Replaced since it was looked at: what was opened is another file.
        self.file.still_there(operation)?;
        let watch = Arc::new(Watch::new(Arc::clone(&self.ended)));
        let closed = Arc::new(AtomicBool::new(false));
        {
            let mut handle = connection.lock_handle().await.map_err(at(operation))?;
            let asked = Arc::clone(&watch);
            handle.set_progress_handler(STEPS, move || asked.goes_on());
            self.alive.count.fetch_add(1, Ordering::SeqCst);
            let token = Token { alive: Arc::clone(&self.alive), closed: Arc::clone(&closed) };
            // Never compared with: SQLite drops it as the last thing when it closes the connection.
            let kept = move |left: &str, right: &str| {
                let _kept = &token;
                left.cmp(right)
            };
            handle.create_collation("bursar_alive", kept).map_err(at(operation))?;
        }
        settings(&mut connection, operation).await?;
        if let Purpose::Tenure { baseline, .. } = &self.purpose {
            baseline.compare(&mut connection, operation).await?;
        }
        Ok(Session { connection, watch, closed })
    }

    /// Where the file is.
    pub(super) fn path(&self) -> &Path {
        self.file.path()
    }

    /// The longest wait for the file's write lock.
    pub(super) fn write_lock_within(&self) -> Duration {
        match &self.purpose {
            Purpose::Control => WRITE_LOCK,
            Purpose::Command => WRITE_LOCK_COMMAND,
            Purpose::Tenure { limits, .. } => limits.lock_timeout,
        }
    }

    /// The longest that one transaction may compute.
    fn statement_within(&self) -> Duration {
        match &self.purpose {
            Purpose::Control => CONTROL,
            Purpose::Command => COMMAND,
            Purpose::Tenure { limits, .. } => limits.statement_timeout,
        }
    }

    /// Lends and opens nothing more, interrupts what runs, and drops what is idle.
    pub(super) fn close(&self) {
        self.ended.store(true, Ordering::SeqCst);
        self.permits.close();
        open_lock(&self.idle).clear();
    }

    /// Whether it was closed.
    pub(super) fn is_closed(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }

    /// Connections that are lent now.
    pub(super) fn lent(&self) -> u64 {
        let idle = open_lock(&self.idle).len() as u64;
        self.alive.count.load(Ordering::SeqCst).saturating_sub(idle)
    }

    /// Closes what is idle, one connection after the other, each within [`ABANDON`]: of two that close at the same moment neither
    /// is the last, and the log stays beside the file.
    pub(super) async fn shed(&self) {
        loop {
            let Some(session) = open_lock(&self.idle).pop() else { return };
            let closed = Arc::clone(&session.closed);
            drop(session);
            if !self.alive.saw(&closed).await {
                return;
            }
        }
    }

    /// Waits until SQLite has closed every connection, within `budget`.
    pub(super) async fn gone(&self, budget: Duration) -> bool {
        let all = async {
            loop {
                let next = self.alive.gone.notified();
                if self.alive.count.load(Ordering::SeqCst) == 0 {
                    return;
                }
                next.await;
            }
        };
        tokio::time::timeout(budget, all).await.is_ok()
    }
}

/// What every session must have, looked at after it was asked for: without it an acknowledged commit can be lost.
async fn settings(connection: &mut SqliteConnection, operation: &'static str) -> Result<(), StoreError> {
    sqlx::raw_sql(include_str!("sql/session.sql")).execute(&mut *connection).await.map_err(at(operation))?;
    let row = sqlx::query(include_str!("sql/session_check.sql"))
        .persistent(false)
        .fetch_one(connection)
        .await
        .map_err(at(operation))?;
    let synchronous: i64 = row.try_get("synchronous").map_err(at(operation))?;
    let foreign_keys: i64 = row.try_get("foreign_keys").map_err(at(operation))?;
    let journal: String = row.try_get("journal").map_err(at(operation))?;
    if synchronous < 2 || foreign_keys != 1 || journal != "wal" {
        return Err(StoreError::Unfit {
            detail: format!(
                "synchronous = {synchronous}, foreign_keys = {foreign_keys}, journal_mode = {journal} after asking for FULL, \
                 on and WAL: an acknowledged commit could be lost"
            ),
        });
    }
    Ok(())
}

impl Held {
    /// The connection.
    pub(super) fn connection(&mut self) -> &mut SqliteConnection {
        // Taken out only by what consumes the value.
        &mut self
            .session
            .as_mut()
            .expect("a session that is lent is there until it is given back or dropped")
            .connection
    }

    fn arm(&self) {
        if let Some(session) = &self.session {
            session.watch.arm(self.sessions.statement_within());
        }
    }

    /// Nothing interrupts from now on.
    pub(super) fn disarm(&self) {
        if let Some(session) = &self.session {
            session.watch.disarm();
        }
    }

    /// The set that it belongs to.
    pub(super) fn sessions(&self) -> &Arc<Sessions> {
        &self.sessions
    }

    /// Gives the session back after a finished transaction.
    pub(super) fn give_back(mut self) {
        self.disarm();
        if let Some(session) = self.session.take()
            && !self.sessions.is_closed()
        {
            let mut idle = open_lock(&self.sessions.idle);
            idle.push(session);
            drop(idle);
            // Closed meanwhile: nothing may stay idle.
            if self.sessions.is_closed() {
                open_lock(&self.sessions.idle).clear();
            }
        }
    }

    /// Interrupts what runs, closes the session and waits until it is seen gone, as long as the bound allows.
    pub(super) async fn abandon(mut self) -> bool {
        let Some(session) = self.session.take() else { return true };
        session.watch.interrupt();
        let closed = Arc::clone(&session.closed);
        drop(session);
        self.sessions.alive.saw(&closed).await
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(session) = &self.session {
            session.watch.interrupt();
        }
    }
}

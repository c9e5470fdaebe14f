//! Sessions with the database: a small pool that knows its backends.
//!
//! Why not the driver's pool: a tenure's sessions must be known by (pid, start) so that they can be ended from another
//! connection; a session whose transaction was dropped half way must never be lent again; a new session that finds
//! another database must say so instead of being tried again; and nothing may be left running when the tenure ends.
//!
//! Invariants:
//! - A session is lent to one holder. It comes back only by [`Held::give_back`], after a finished transaction; dropped in
//!   any other way its socket is closed.
//! - After [`Sessions::close`] none is lent or opened.
//!
//! Deliberately absent: background tasks, and retries but for a session that died while it stood idle.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use sqlx::postgres::PgConnection;
use sqlx::{Connection, Row};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::error::{at, fault};
use super::lineage::Baseline;
use super::places::{Place, Share, Taken};
use super::settings::Way;
use super::within::{CONNECT, CONNECT_COMMAND, PING, within};
use crate::store::{StoreError, TenureLimits};

/// One session on the server. A pid alone may be another session's by now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Backend {
    pub(super) pid: i32,
    pub(super) started: DateTime<Utc>,
}

/// What sessions are for; decides their settings.
#[derive(Debug)]
pub(super) enum Purpose {
    /// Eligibility, the fence, status, refusals, ending other sessions.
    Control,
    /// One command with one long transaction.
    Command,
    /// The transactions of one tenure, within its share of the process's limit; the control pool ends what others' need.
    Tenure { limits: TenureLimits, baseline: Arc<Baseline>, share: Option<Share>, control: Arc<Sessions> },
}

/// A bounded set of sessions.
#[derive(Debug)]
pub(super) struct Sessions {
    way: Way,
    purpose: Purpose,
    permits: Arc<Semaphore>,
    acquire_timeout: Duration,
    idle: Mutex<Vec<Session>>,
    /// Backends of a tenure that may be alive.
    backends: Mutex<Vec<Backend>>,
    /// Backends that were to end and could not be seen gone: what they had under way may still be committed.
    unseen: Mutex<Vec<Backend>>,
    opened: AtomicU64,
    closed: AtomicBool,
}

/// One open session.
#[derive(Debug)]
pub(super) struct Session {
    connection: PgConnection,
    backend: Backend,
    /// Of a tenure whose process has a limit.
    place: Option<Place>,
}

impl Session {
    /// Closes its socket. The place is given back when it is dropped.
    pub(super) fn disconnect(self) -> (Backend, Option<Place>) {
        (self.backend, self.place)
    }
}

/// A session that is lent. Dropping it closes it.
#[derive(Debug)]
pub(super) struct Held {
    session: Session,
    sessions: Arc<Sessions>,
    /// Whether it stood idle before, and may have died meanwhile.
    pub(super) reused: bool,
    _permit: OwnedSemaphorePermit,
}

fn open_lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics under these locks, and what they hold is whole at any time.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sessions {
    pub(super) fn new(way: Way, most: u32, acquire_timeout: Duration, purpose: Purpose) -> Arc<Self> {
        let permits = usize::try_from(most.max(1)).unwrap_or(1);
        Arc::new(Self {
            way,
            purpose,
            permits: Arc::new(Semaphore::new(permits)),
            acquire_timeout,
            idle: Mutex::new(Vec::new()),
            backends: Mutex::new(Vec::new()),
            unseen: Mutex::new(Vec::new()),
            opened: AtomicU64::new(0),
            closed: AtomicBool::new(false),
        })
    }

    /// Lends a session, opening one where none is idle.
    ///
    /// # Errors
    /// [`StoreError::Ended`] after [`Self::close`]; [`StoreError::TimedOut`] where none comes free; those of connecting.
    pub(super) async fn acquire(self: &Arc<Self>, operation: &'static str) -> Result<Held, StoreError> {
        let waited = tokio::time::timeout(self.acquire_timeout, Arc::clone(&self.permits).acquire_owned()).await;
        let permit = match waited {
            Ok(Ok(permit)) => permit,
            Ok(Err(_closed)) => return Err(StoreError::Ended { operation }),
            Err(_) => return Err(StoreError::TimedOut { operation, within: self.acquire_timeout }),
        };
        let (session, reused) = match self.take_idle(operation).await {
            Some(session) => (session, true),
            None => match self.place(operation).await? {
                Some(Taken::Idle(session)) => (session, true),
                Some(Taken::Place(place)) => (self.opened_on(operation, Some(place)).await?, false),
                None => (self.opened_on(operation, None).await?, false),
            },
        };
        let held = Held { session, sessions: Arc::clone(self), reused, _permit: permit };
        if self.closed.load(Ordering::SeqCst) { Err(StoreError::Ended { operation }) } else { Ok(held) }
    }

    /// A place for one more session, where those of the process are limited.
    async fn place(&self, operation: &'static str) -> Result<Option<Taken>, StoreError> {
        match &self.purpose {
            Purpose::Tenure { share: Some(share), control, .. } => {
                let taken = share.take(self, control, operation);
                let elapsed = |_| StoreError::TimedOut { operation, within: self.acquire_timeout };
                tokio::time::timeout(self.acquire_timeout, taken).await.map(Some).map_err(elapsed)
            }
            Purpose::Tenure { share: None, .. } | Purpose::Control | Purpose::Command => Ok(None),
        }
    }

    async fn opened_on(&self, operation: &'static str, place: Option<Place>) -> Result<Session, StoreError> {
        within(operation, self.connect_within(), Box::pin(self.open(operation, place))).await
    }

    /// An idle session, unlooked at.
    pub(super) fn pop_idle(&self) -> Option<Session> {
        open_lock(&self.idle).pop()
    }

    /// An idle session that another tenure may have the place of.
    pub(super) fn take_idle_on_a_common_place(&self) -> Option<Session> {
        let mut idle = open_lock(&self.idle);
        let found = idle.iter().position(|session| session.place.as_ref().is_some_and(Place::is_common))?;
        Some(idle.remove(found))
    }

    /// An idle session. Those of the control pool are looked at first, for what they are needed for (ending a session,
    /// noting a refusal) is done once; whoever begins a transaction finds a dead session out by itself.
    async fn take_idle(&self, operation: &'static str) -> Option<Session> {
        loop {
            let mut session = self.pop_idle()?;
            match self.purpose {
                Purpose::Tenure { .. } | Purpose::Command => return Some(session),
                Purpose::Control => {
                    let ping = async { session.connection.ping().await.map_err(at(operation)) };
                    match within(operation, PING, ping).await {
                        Ok(()) => return Some(session),
                        Err(error) => tracing::debug!(operation, %error, "an idle session was dead"),
                    }
                }
            }
        }
    }

    /// How long opening one may take. Who waits for a tenure or a health check has another replica to turn to.
    const fn connect_within(&self) -> Duration {
        match self.purpose {
            Purpose::Control | Purpose::Tenure { .. } => CONNECT,
            Purpose::Command => CONNECT_COMMAND,
        }
    }

    /// How many sessions were ever opened; changes when one was replaced.
    pub(super) fn opened(&self) -> u64 {
        self.opened.load(Ordering::SeqCst)
    }

    async fn open(&self, operation: &'static str, place: Option<Place>) -> Result<Session, StoreError> {
        let mut connection = self.way.connect(operation).await?;
        let backend = self.prepare(&mut connection, operation).await?;
        if let Purpose::Tenure { .. } = self.purpose {
            open_lock(&self.backends).push(backend);
        }
        self.opened.fetch_add(1, Ordering::SeqCst);
        if self.closed.load(Ordering::SeqCst) {
            return Err(StoreError::Ended { operation });
        }
        if let Purpose::Tenure { baseline, .. } = &self.purpose {
            baseline.compare(&mut connection, operation).await?;
        }
        Ok(Session { connection, backend, place })
    }

    /// Settings and identity, in the simple protocol or in one extended statement: a pooler in between must not break
    /// this before it is found out.
    async fn prepare(&self, connection: &mut PgConnection, operation: &'static str) -> Result<Backend, StoreError> {
        let row = match &self.purpose {
            Purpose::Control => {
                sqlx::raw_sql(include_str!("sql/session_control.sql")).fetch_one(&mut *connection).await
            }
            Purpose::Command => {
                sqlx::raw_sql(include_str!("sql/session_command.sql")).fetch_one(&mut *connection).await
            }
            Purpose::Tenure { limits, .. } => {
                sqlx::query(include_str!("sql/session_tenure.sql"))
                    .bind(milliseconds(limits.statement_timeout))
                    .bind(milliseconds(limits.lock_timeout))
                    .bind(milliseconds(limits.idle_in_transaction_timeout))
                    .persistent(false)
                    .fetch_one(&mut *connection)
                    .await
            }
        }
        .map_err(at(operation))?;
        let pid: i32 = row.try_get("pid").map_err(at(operation))?;
        let started: DateTime<Utc> = row.try_get("started").map_err(at(operation))?;
        Ok(Backend { pid, started })
    }

    /// Lends and opens nothing more, and drops what is idle. Sessions that are lent go on until they are ended. Answers the
    /// places of those that were idle, to be kept until their end was seen.
    pub(super) fn close(&self) -> Vec<Place> {
        self.closed.store(true, Ordering::SeqCst);
        self.permits.close();
        let idle = std::mem::take(&mut *open_lock(&self.idle));
        idle.into_iter().filter_map(|session| session.disconnect().1).collect()
    }

    /// Whether it was closed.
    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Backends that may be alive.
    pub(super) fn backends(&self) -> Vec<Backend> {
        open_lock(&self.backends).clone()
    }

    /// Backends that were to end and could not be seen gone.
    pub(super) fn unseen(&self) -> Vec<Backend> {
        open_lock(&self.unseen).clone()
    }

    /// Remembers a backend that could not be seen gone.
    pub(super) fn not_seen_gone(&self, backend: Backend) {
        open_lock(&self.unseen).push(backend);
    }

    /// Forgets a backend that is known to be gone.
    pub(super) fn forget(&self, backend: Backend) {
        open_lock(&self.backends).retain(|known| *known != backend);
        open_lock(&self.unseen).retain(|known| *known != backend);
    }
}

/// A time-out as PostgreSQL reads it; at least 1 ms, for 0 would switch it off.
fn milliseconds(time: Duration) -> String {
    time.as_millis().max(1).to_string()
}

impl Held {
    /// The connection.
    pub(super) fn connection(&mut self) -> &mut PgConnection {
        &mut self.session.connection
    }

    /// Which session it is.
    pub(super) fn backend(&self) -> Backend {
        self.session.backend
    }

    /// The set that it belongs to.
    pub(super) fn sessions(&self) -> Arc<Sessions> {
        Arc::clone(&self.sessions)
    }

    /// Gives the session back after a finished transaction.
    pub(super) fn give_back(self) {
        let Self { session, sessions, _permit, .. } = self;
        if !sessions.is_closed() {
            open_lock(&sessions.idle).push(session);
            if let Purpose::Tenure { share: Some(share), .. } = &sessions.purpose {
                share.became_idle();
            }
        }
    }

    /// Closes its socket. Answers the place, to be kept until its end was seen.
    pub(super) fn disconnect(self) -> Option<Place> {
        self.session.disconnect().1
    }

    /// Closes the session in good order; only for one that has nothing under way.
    pub(super) async fn close(self, operation: &'static str) {
        let Self { session, sessions, _permit, .. } = self;
        if let Err(error) = within(operation, CONNECT, async {
            session.connection.close().await.map_err(|error| fault(operation, &error))
        })
        .await
        {
            tracing::debug!(operation, %error, "closing a session");
        } else {
            sessions.forget(session.backend);
        }
    }
}

//! Two connections to the lease file, one that writes and one that reads, kept while they work.
//!
//! Invariants:
//! - An attempt has one deadline. A connection that failed, or was dropped half way, is closed, and its transaction with it.
//! - Only the file that the path names counts: one that was deleted or replaced is opened anew.
//! - A process that is stopped inside of a write transaction keeps everyone out. When the same one was found at every try for a
//!   whole TTL, it is ended, if it is one of ours; else the error names it.

use std::os::unix::fs::MetadataExt as _;
use std::sync::{Mutex as PlainMutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use sqlx::sqlite::SqliteConnection;
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::SqliteCoordinatorSettings;
use super::file::{OpenError, open_for_reading, open_for_writing, processes, touch};
use crate::clock;
use crate::hostproc::{self, Ending, Patience};
use crate::leadership::coordinator::CoordinatorError;
use crate::leadership::lease::ATTEMPT_LIMIT;

/// BEGIN of every change: the write lock is had before anything is read.
pub(super) const IMMEDIATE: &str = "begin immediate";
pub(super) const COMMIT: &str = "commit";
pub(super) const ROLLBACK: &str = "rollback";

/// SQLite's primary result codes that are told apart; see its documentation.
pub(super) const BUSY_CODE: i64 = 5;
const READ_ONLY_CODE: i64 = 8;
const CORRUPT_CODE: i64 = 11;
const FULL_CODE: i64 = 13;
const CANNOT_OPEN_CODE: i64 = 14;
const NO_DATABASE_CODE: i64 = 26;
/// An extended code's low byte is the primary one.
const PRIMARY: i64 = 0xff;

/// The machine's boot, and its `CLOCK_BOOTTIME` in milliseconds, read after the lock was had.
pub(super) struct Stamp {
    pub(super) boot: String,
    pub(super) now: i64,
}

/// A connection, and which file it has open.
struct Open {
    connection: SqliteConnection,
    file: (u64, u64),
}

pub(super) struct Link {
    settings: SqliteCoordinatorSettings,
    writer: Mutex<Option<Open>>,
    reader: Mutex<Option<Open>>,
    patience: PlainMutex<Patience>,
}

/// Work on a connection.
pub(super) trait Work<T>:
    for<'c> FnOnce(&'c mut SqliteConnection, Stamp) -> BoxFuture<'c, Result<T, sqlx::Error>> + Send
{
}

impl<T, F> Work<T> for F where
    F: for<'c> FnOnce(&'c mut SqliteConnection, Stamp) -> BoxFuture<'c, Result<T, sqlx::Error>> + Send
{
}

impl Link {
    pub(super) fn new(settings: SqliteCoordinatorSettings) -> Self {
        let patience = PlainMutex::new(Patience::new(settings.ttl));
        Self { settings, writer: Mutex::new(None), reader: Mutex::new(None), patience }
    }

    fn endpoint(&self) -> String {
        self.settings.path.display().to_string()
    }

    /// One attempt at a change, in a transaction of its own.
    pub(super) async fn write<T: Send>(&self, work: impl Work<T>) -> Result<T, CoordinatorError> {
        let attempt = async {
            let mut kept = self.writer.lock().await;
            let mut open = match self.still_the_file(kept.take()) {
                Some(open) => open,
                None => self.opened(open_for_writing(&self.settings.path)).await?,
            };
            sqlx::raw_sql(IMMEDIATE).execute(&mut open.connection).await?;
            self.patience().lock_was_had();
            crate::point!("lease.write.begun");
            let done = work(&mut open.connection, stamp()?).await?;
            sqlx::raw_sql(COMMIT).execute(&mut open.connection).await?;
            *kept = Some(open);
            Ok(done)
        };
        self.within(attempt).await
    }

    /// One attempt at a read, in one snapshot.
    pub(super) async fn read<T: Send>(&self, work: impl Work<T>) -> Result<T, CoordinatorError> {
        let attempt = async {
            let mut kept = self.reader.lock().await;
            let mut open = match self.still_the_file(kept.take()) {
                Some(open) => open,
                None => self.opened(open_for_reading(&self.settings.path)).await?,
            };
            let done = work(&mut open.connection, stamp()?).await?;
            *kept = Some(open);
            Ok(done)
        };
        self.within(attempt).await
    }

    async fn within<T>(&self, attempt: impl Future<Output = Result<T, OpenError>>) -> Result<T, CoordinatorError> {
        let started = clock::boottime();
        match timeout(ATTEMPT_LIMIT, attempt).await {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(OpenError::Driver(error))) if primary_code(&error) == Some(BUSY_CODE) => {
                let left = ATTEMPT_LIMIT.saturating_sub(clock::boottime().since(started));
                Err(self.busy(left).await)
            }
            Ok(Err(error)) => Err(self.failed(&error)),
            Err(_elapsed) => Err(CoordinatorError::Unknown { endpoint: self.endpoint(), limit: ATTEMPT_LIMIT }),
        }
    }

    fn file(&self) -> std::io::Result<(u64, u64)> {
        // By its path: opening it here and closing it would drop this process's locks on it.
        std::fs::metadata(&self.settings.path).map(|file| (file.dev(), file.ino()))
    }

    /// What is opened, with which file it is: the one that the path named before and after. Where it was replaced meanwhile,
    /// nobody can tell which of the two is open.
    async fn opened(
        &self,
        opening: impl Future<Output = Result<SqliteConnection, OpenError>>,
    ) -> Result<Open, OpenError> {
        touch(&self.settings.path);
        let before = self.file().ok();
        let connection = opening.await?;
        let file = self.file()?;
        if before != Some(file) {
            return Err(OpenError::Replaced);
        }
        Ok(Open { connection, file })
    }

    fn still_the_file(&self, open: Option<Open>) -> Option<Open> {
        open.filter(|open| self.file().is_ok_and(|file| file == open.file))
    }

    fn patience(&self) -> MutexGuard<'_, Patience> {
        self.patience.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Somebody holds the write lock: says who, and ends it where patience with it is over and it is one of ours. `left` is
    /// what the attempt has left.
    async fn busy(&self, left: Duration) -> CoordinatorError {
        let unreachable = |why: String| CoordinatorError::Unreachable { endpoint: self.endpoint(), why };
        let holder = match hostproc::write_lock_holder(&self.settings.path) {
            Ok(Some(holder)) => holder,
            Ok(None) => {
                self.patience().is_over(None, clock::boottime());
                return unreachable("the file is locked, by nobody who can be seen from here".to_owned());
            }
            Err(error) => return unreachable(format!("the file is locked; who holds it could not be found: {error}")),
        };
        if !self.patience().is_over(Some(&holder.mark), clock::boottime()) {
            return unreachable(format!("the file is locked by {holder}"));
        }
        let limit = self.settings.ttl;
        let ended = match self.recorded(left).await {
            Ok(recorded) => hostproc::end(&holder.mark, &recorded).map_err(|error| error.to_string()),
            Err(why) => Err(why),
        };
        let why = match ended {
            Ok(Ending::Ended) => {
                let pid = holder.mark.pid;
                tracing::warn!(
                    pid,
                    command = holder.command,
                    ?limit,
                    "ended a replica that held the lease file's lock"
                );
                format!("{holder} held the file's lock for {limit:?} and was ended")
            }
            Ok(Ending::Gone) => format!("{holder} held the file's lock and is gone"),
            Ok(Ending::Own) => {
                format!("this process holds the file's lock for {limit:?}: another connection of it is stuck")
            }
            Ok(Ending::NotRecorded) => {
                format!("{holder} holds the file's lock for {limit:?} and is no replica of this file: end it by hand")
            }
            Err(why) => format!("{holder} holds the file's lock for {limit:?} and cannot be ended: {why}"),
        };
        unreachable(why)
    }

    /// The recorded processes, past a writer that is stopped: a reader waits for none.
    async fn recorded(&self, left: Duration) -> Result<Vec<hostproc::ProcessMark>, String> {
        let read = async {
            let mut connection = open_for_reading(&self.settings.path).await?;
            Ok::<_, OpenError>(processes(&mut connection).await?)
        };
        match timeout(left, read).await {
            Ok(Ok(recorded)) => Ok(recorded),
            Ok(Err(error)) => Err(self.failed(&error).to_string()),
            Err(_elapsed) => Err("the recorded processes could not be read in time".to_owned()),
        }
    }

    fn failed(&self, error: &OpenError) -> CoordinatorError {
        let endpoint = self.endpoint();
        let denied = |endpoint, why: String| CoordinatorError::Denied { endpoint, why };
        let (code, words) = match error {
            OpenError::Refused(why) => return denied(endpoint, why.clone()),
            OpenError::Replaced => {
                let why = "the file was replaced while it was opened: it is opened anew".to_owned();
                return CoordinatorError::Unreachable { endpoint, why };
            }
            OpenError::System(error) => return CoordinatorError::Unreachable { endpoint, why: error.to_string() },
            OpenError::Driver(error) => (primary_code(error), error.to_string()),
        };
        match code {
            Some(READ_ONLY_CODE) => denied(endpoint, format!("{words}: make the file and its folder writable")),
            Some(CANNOT_OPEN_CODE) => {
                denied(endpoint, format!("{words}: make its folder, and let this user write there"))
            }
            Some(CORRUPT_CODE | NO_DATABASE_CODE) => {
                denied(endpoint, format!("{words}: it holds leases only, so it may be deleted while no replica runs"))
            }
            Some(FULL_CODE) => {
                CoordinatorError::Unreachable { endpoint, why: format!("{words}: make room on the disk") }
            }
            Some(_) | None => CoordinatorError::Unreachable { endpoint, why: words },
        }
    }
}

fn stamp() -> std::io::Result<Stamp> {
    let now = i64::try_from(clock::boottime().since_boot().as_millis()).unwrap_or(i64::MAX);
    Ok(Stamp { boot: hostproc::boot_id()?, now })
}

pub(super) fn primary_code(error: &sqlx::Error) -> Option<i64> {
    let code: i64 = error.as_database_error()?.code()?.parse().ok()?;
    Some(code & PRIMARY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_file_that_is_replaced_while_it_is_opened_is_not_taken_for_its_successor() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("bursar.db.lease");
        let link = Link::new(SqliteCoordinatorSettings { path: path.clone(), ttl: Duration::from_secs(5) });
        let opened = link.opened(async {
            let connection = open_for_reading(&path).await?;
            std::fs::write(folder.path().join("other"), "")?;
            std::fs::rename(folder.path().join("other"), &path)?;
            Ok(connection)
        });
        assert!(matches!(opened.await, Err(OpenError::Replaced)));
        let opened = link.opened(open_for_writing(&path)).await.expect("the successor");
        assert_eq!(opened.file, link.file().expect("it is there"));
    }
}

//! Opening the lease file: whose it is, its schema, and that this process has it open.

use std::path::Path;
use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteSynchronous};
use sqlx::{ConnectOptions, Row};

use super::link::{BUSY_CODE, COMMIT, IMMEDIATE, ROLLBACK, primary_code};
use crate::clock;
use crate::hostproc::ProcessMark;

/// Who waits for the file's lock waits so long: well below the fifth of the shortest TTL, and below an attempt's deadline.
pub(super) const BUSY: Duration = Duration::from_millis(400);
/// How soon a lock that SQLite does not wait for is asked for again.
const AGAIN: Duration = Duration::from_millis(5);
/// `application_id` of a lease file ("bule"); the schema's own file sets it.
const APPLICATION: i64 = 0x6275_6c65;
/// `user_version` of this release's schema.
const SCHEMA: i64 = 1;

/// Why a file was not opened.
#[derive(Debug)]
pub(super) enum OpenError {
    /// The driver.
    Driver(sqlx::Error),
    /// It is not ours, or of a newer release.
    Refused(String),
    /// Another file stood under the path when it was open.
    Replaced,
    /// `/proc` or the file's entry could not be read.
    System(std::io::Error),
}

impl From<sqlx::Error> for OpenError {
    fn from(error: sqlx::Error) -> Self {
        Self::Driver(error)
    }
}

impl From<std::io::Error> for OpenError {
    fn from(error: std::io::Error) -> Self {
        Self::System(error)
    }
}

/// Makes a file without content where there is none. Where that fails, SQLite's own opening says why.
pub(super) fn touch(path: &Path) {
    if path.try_exists().is_ok_and(|exists| !exists) {
        // Nobody has it open yet, so that closing it drops no lock of SQLite's.
        let _why_not_is_sqlites_to_say = std::fs::OpenOptions::new().write(true).create_new(true).open(path);
    }
}

async fn connect(path: &Path) -> Result<SqliteConnection, sqlx::Error> {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(true)
        .busy_timeout(BUSY)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Normal);
    let until = clock::boottime() + BUSY;
    loop {
        match options.connect().await {
            // Several that turn the log on in a new file at once: SQLite does not wait for that lock by itself.
            Err(error) if primary_code(&error) == Some(BUSY_CODE) && clock::boottime() < until => {
                tokio::time::sleep(AGAIN).await;
            }
            opened => return opened,
        }
    }
}

/// A connection that reads a file which is there already, whole.
pub(super) async fn open_for_reading(path: &Path) -> Result<SqliteConnection, OpenError> {
    let mut connection = connect(path).await?;
    if is_new(&mut connection, path).await? {
        make(&mut connection, path).await?;
    }
    Ok(connection)
}

/// A connection that writes: the schema is made where it is missing, and this process is recorded.
pub(super) async fn open_for_writing(path: &Path) -> Result<SqliteConnection, OpenError> {
    let mut connection = open_for_reading(path).await?;
    let own = ProcessMark::own()?;
    sqlx::raw_sql(IMMEDIATE).execute(&mut connection).await?;
    for process in processes(&mut connection).await? {
        if process != own && !process.lives()? {
            let query = sqlx::query(include_str!("sql/process_drop.sql")).bind(process.pid).bind(process.boot_id);
            query.bind(process.started).execute(&mut connection).await?;
        }
    }
    let query = sqlx::query(include_str!("sql/process_put.sql")).bind(own.pid).bind(own.boot_id).bind(own.started);
    query.execute(&mut connection).await?;
    sqlx::raw_sql(COMMIT).execute(&mut connection).await?;
    Ok(connection)
}

/// The processes that recorded themselves in the file.
pub(super) async fn processes(connection: &mut SqliteConnection) -> Result<Vec<ProcessMark>, sqlx::Error> {
    let rows = sqlx::query(include_str!("sql/processes.sql")).fetch_all(connection).await?;
    rows.iter()
        .map(|row| {
            Ok(ProcessMark {
                pid: row.try_get("pid")?,
                boot_id: row.try_get("boot_id")?,
                started: row.try_get("started")?,
            })
        })
        .collect()
}

/// Whether the file is empty; an error where it is somebody else's, or a newer release's.
async fn is_new(connection: &mut SqliteConnection, path: &Path) -> Result<bool, OpenError> {
    let row = sqlx::query(include_str!("sql/application.sql")).fetch_one(connection).await?;
    let (application, schema): (i64, i64) = (row.try_get("application_id")?, row.try_get("user_version")?);
    let objects: i64 = row.try_get("objects")?;
    let shown = path.display();
    match (application, schema) {
        (APPLICATION, SCHEMA) => Ok(false),
        (0, 0) if objects == 0 => Ok(true),
        (APPLICATION, newer) => Err(OpenError::Refused(format!(
            "{shown} is a lease file of schema {newer}, this release knows {SCHEMA}: run the release that made it, or \
             delete it while no replica runs"
        ))),
        (_, _) => Err(OpenError::Refused(format!(
            "{shown} is a SQLite file of another program (application_id {application}): bursar keeps its lease there; \
             move it away, or give the store another name"
        ))),
    }
}

/// Makes the schema, once: of two that try at once the second finds it.
async fn make(connection: &mut SqliteConnection, path: &Path) -> Result<(), OpenError> {
    sqlx::raw_sql(IMMEDIATE).execute(&mut *connection).await?;
    if is_new(connection, path).await? {
        sqlx::raw_sql(include_str!("sql/schema.sql")).execute(&mut *connection).await?;
        sqlx::raw_sql(COMMIT).execute(connection).await?;
    } else {
        sqlx::raw_sql(ROLLBACK).execute(connection).await?;
    }
    Ok(())
}

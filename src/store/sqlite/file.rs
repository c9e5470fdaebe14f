//! The file: found to be what it should be, made and brought up before anything else is asked of it.
//!
//! Invariants:
//! - Nothing is changed in a file before it is known to be empty or bursar's. A file of another program, of a newer schema, or
//!   none at all is an error that says what to do.
//! - A process works on the file that it looked at first, and only as long as the path names it. One that was deleted or
//!   replaced can be written to for ever, where nobody sees it: not an import, not a halt, not the next replica. Nor is the
//!   other file opened beside it: their logs have the same name, and closing one drops this process's locks on the other's.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions, Connection, Row};
use tokio::sync::OnceCell;

use super::error::{at, fault, is_busy};
use super::migrate::{self, SCHEMA};
use super::process;
use super::settings::SqliteSettings;
use super::tx::pause;
use super::within::{BUSY_SLICE, WRITE_LOCK};
use crate::clock;
use crate::store::StoreError;

/// How a file says that it is bursar's: `BURS`, in its header. Also in `sql/migrate_mark.sql`.
pub(super) const APPLICATION_ID: i64 = 0x4255_5253;

/// File systems on which two processes do not see one another's locks or shared memory.
const NETWORK: [&str; 9] = ["nfs", "nfs4", "cifs", "smb3", "smbfs", "ceph", "glusterfs", "fuse.sshfs", "lustre"];

/// The file of one store.
#[derive(Debug)]
pub(super) struct File {
    path: PathBuf,
    create: bool,
    is_replica: bool,
    replica: String,
    ready: OnceCell<Ready>,
}

/// What the first look found.
#[derive(Debug, Clone, Copy)]
struct Ready {
    /// The schema before and after.
    schema: (i64, i64),
    /// Device and inode.
    identity: (u64, u64),
}

impl File {
    pub(super) fn new(settings: &SqliteSettings) -> Self {
        Self {
            path: settings.path.clone(),
            create: settings.create,
            is_replica: settings.is_replica,
            replica: settings.replica.clone(),
            ready: OnceCell::new(),
        }
    }

    /// Whether this process is a replica.
    pub(super) const fn is_replica(&self) -> bool {
        self.is_replica
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens one connection. Settings are the caller's.
    pub(super) async fn connect(&self, operation: &'static str) -> Result<SqliteConnection, StoreError> {
        let options = SqliteConnectOptions::new()
            .filename(&self.path)
            .create_if_missing(false)
            .busy_timeout(BUSY_SLICE)
            .statement_cache_capacity(200)
            .disable_statement_logging();
        self.named(options.connect().await.map_err(at(operation)))
    }

    /// Looks at the file, makes it and brings it up, once. Answers its schema before and after.
    pub(super) async fn make_ready(&self, operation: &'static str) -> Result<(i64, i64), StoreError> {
        let ready = self.ready.get_or_try_init(|| async { self.named(self.look(operation).await) }).await?;
        Ok(ready.schema)
    }

    /// Whether the path still names the file that was looked at.
    ///
    /// # Errors
    /// [`StoreError::Unfit`] where it names another one or none; [`StoreError::Unreachable`] where that cannot be seen.
    pub(super) fn still_there(&self, operation: &'static str) -> Result<(), StoreError> {
        let Some(ready) = self.ready.get() else { return Ok(()) };
        let found = match std::fs::metadata(&self.path) {
            Ok(found) => Some((found.dev(), found.ino())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                let detail = format!("{} cannot be looked at: {error}", self.path.display());
                return Err(StoreError::Unreachable { operation, detail });
            }
        };
        if found == Some(ready.identity) {
            return Ok(());
        }
        let what = if found.is_some() { "replaced" } else { "moved or deleted" };
        self.named(Err(StoreError::Unfit {
            detail: format!("the file was {what} while it was in use: put it back, or restart every replica"),
        }))
    }

    async fn look(&self, operation: &'static str) -> Result<Ready, StoreError> {
        if let Some(kind) = network_file_system(&self.path) {
            return Err(StoreError::Unfit {
                detail: format!(
                    "it is on a network file system ({kind}), where replicas do not see one another's locks: put it on a \
                     disk of this machine, or use PostgreSQL"
                ),
            });
        }
        self.make()?;
        // By its path, and before it is opened: replaced in between, it is found to be another one at the next look.
        let found = std::fs::metadata(&self.path).map_err(|error| self.cannot_make(&error))?;
        let identity = (found.dev(), found.ino());
        has_one_name(found.nlink())?;
        let mut connection = self.connect(operation).await?;
        let found = identify(&mut connection, operation).await?;
        if found.is_empty && !self.create {
            return Err(StoreError::Unfit {
                detail: "the file is empty: start a replica or `bursar migrate` first, or name another file".to_owned(),
            });
        }
        if found.schema > SCHEMA || (found.schema < SCHEMA && !self.create) {
            return Err(StoreError::Schema { found: found.schema, expected: SCHEMA });
        }
        write_ahead_log(&mut connection, operation).await?;
        let before = if found.schema < SCHEMA { migrate::bring_up(&mut connection, operation).await? } else { SCHEMA };
        if self.is_replica {
            process::enlist(&mut connection, operation, &self.replica).await?;
        }
        connection.close().await.map_err(at(operation))?;
        Ok(Ready { schema: (before, SCHEMA), identity })
    }

    /// Makes a file without content where there is none.
    fn make(&self) -> Result<(), StoreError> {
        match std::fs::metadata(&self.path) {
            Ok(found) if found.is_dir() => {
                Err(StoreError::Unfit { detail: "it is a directory: name a file in it".to_owned() })
            }
            Ok(_) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound && !self.create => Err(StoreError::Unfit {
                detail: "there is no such file: start a replica or `bursar migrate` first, or name another file"
                    .to_owned(),
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // Nobody has it open yet, so that closing it drops no lock of SQLite's.
                match std::fs::OpenOptions::new().write(true).create_new(true).open(&self.path) {
                    Ok(_) => Ok(()),
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
                    Err(error) => Err(self.cannot_make(&error)),
                }
            }
            Err(error) => Err(self.cannot_make(&error)),
        }
    }

    fn cannot_make(&self, error: &io::Error) -> StoreError {
        let place = self.path.parent().filter(|place| !place.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
        StoreError::Unfit {
            detail: format!(
                "it cannot be made: {error}; the directory {} must exist, have room, and be writable by this user",
                place.display()
            ),
        }
    }

    /// Names the file in what a person reads.
    fn named<T>(&self, result: Result<T, StoreError>) -> Result<T, StoreError> {
        let path = self.path.display();
        result.map_err(|error| match error {
            StoreError::Unfit { detail } => StoreError::Unfit { detail: format!("{path}: {detail}") },
            StoreError::ReadOnly { operation, detail } => {
                StoreError::ReadOnly { operation, detail: format!("{path}: {detail}") }
            }
            StoreError::TryAgain { operation, code, detail } => {
                StoreError::TryAgain { operation, code, detail: format!("{path}: {detail}") }
            }
            other => other,
        })
    }
}

/// Log and lease are named after the file: who comes by another hard link has others, and both would write without
/// seeing one another.
fn has_one_name(names: u64) -> Result<(), StoreError> {
    if names <= 1 {
        return Ok(());
    }
    Err(StoreError::Unfit {
        detail: format!(
            "the file has {names} names (hard links), and what comes by another one is not seen: remove the others, or copy              the file"
        ),
    })
}

/// What a file says that it is.
struct Found {
    is_empty: bool,
    schema: i64,
}

async fn identify(connection: &mut SqliteConnection, operation: &'static str) -> Result<Found, StoreError> {
    let row = patiently(connection, operation, include_str!("sql/identify.sql")).await?;
    let application: i64 = row.try_get("application_id").map_err(at(operation))?;
    let tables: i64 = row.try_get("tables").map_err(at(operation))?;
    let migrated: i64 = row.try_get("migrated").map_err(at(operation))?;
    if application == 0 && tables == 0 {
        return Ok(Found { is_empty: true, schema: 0 });
    }
    if application != APPLICATION_ID {
        return Err(StoreError::Unfit {
            detail: format!(
                "it is another program's database (application id {application}, {tables} tables): name another file in \
                 database.url; it was left as it is"
            ),
        });
    }
    if migrated == 0 {
        return Ok(Found { is_empty: false, schema: 0 });
    }
    let schema = patiently(connection, operation, include_str!("sql/schema_version.sql")).await?;
    Ok(Found { is_empty: false, schema: schema.try_get(0).map_err(at(operation))? })
}

/// Turns the write-ahead log on; it stays on in the file.
async fn write_ahead_log(connection: &mut SqliteConnection, operation: &'static str) -> Result<(), StoreError> {
    let row = patiently(connection, operation, include_str!("sql/wal.sql")).await?;
    let mode: String = row.try_get(0).map_err(at(operation))?;
    if mode == "wal" {
        return Ok(());
    }
    Err(StoreError::Unfit {
        detail: format!(
            "journal_mode is {mode} after asking for WAL: the file system has no shared memory; put the file on a disk of \
             this machine"
        ),
    })
}

/// One statement that is asked again while another process has the file to itself, for it is being made or brought up.
async fn patiently(
    connection: &mut SqliteConnection,
    operation: &'static str,
    statement: &'static str,
) -> Result<sqlx::sqlite::SqliteRow, StoreError> {
    let started = clock::boottime();
    loop {
        match sqlx::raw_sql(statement).fetch_one(&mut *connection).await {
            Err(error) if is_busy(&error) && clock::boottime().since(started) < WRITE_LOCK => pause().await,
            answered => return answered.map_err(|error| fault(operation, &error)),
        }
    }
}

/// The kind of network file system that the file is on, as far as the kernel's table says so.
fn network_file_system(path: &Path) -> Option<&'static str> {
    let place = std::path::absolute(path).ok()?;
    let place = place.parent().and_then(|place| place.canonicalize().ok())?;
    let mounts = std::fs::read_to_string("/proc/self/mounts").ok()?;
    kind_of(&mounts, &place)
}

fn kind_of(mounts: &str, place: &Path) -> Option<&'static str> {
    let mut best: Option<(usize, &str)> = None;
    for line in mounts.lines() {
        let mut fields = line.split(' ').skip(1);
        let (Some(point), Some(kind)) = (fields.next(), fields.next()) else { continue };
        let point = point.replace("\\040", " ");
        // A later mount lies on top of an earlier one of the same place.
        if place.starts_with(&point) && best.is_none_or(|(length, _)| point.len() >= length) {
            best = Some((point.len(), kind));
        }
    }
    let (_, kind) = best?;
    NETWORK.into_iter().find(|network| *network == kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_on_a_network_is_noticed_by_the_longest_mount() {
        let mounts = "proc /proc proc rw 0 0\n/dev/sda1 / ext4 rw 0 0\nhost:/data /srv nfs4 rw 0 0\ntmpfs /srv/fast tmpfs rw 0 0\n";
        assert_eq!(kind_of(mounts, Path::new("/srv/bursar")), Some("nfs4"));
        assert_eq!(kind_of(mounts, Path::new("/srv/fast/bursar")), None);
        assert_eq!(kind_of(mounts, Path::new("/home/me")), None);
        assert_eq!(kind_of(mounts, Path::new("/srvother")), None);
    }
}

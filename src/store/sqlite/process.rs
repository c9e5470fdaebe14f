//! Processes that have the file open: who is listed, and who holds its write lock.
//!
//! A replica that stands still inside a write transaction locks every other out, and SQLite has no way to end it. The kernel
//! knows who holds the lock: the write lock of a file in WAL mode is one byte of `FILE-shm`, and `/proc/locks` lists it with
//! the process. That process is ended only if it is a replica that listed itself in this file, by boot, number and start:
//! a number alone may be another program's by now, and a `sqlite3` shell that somebody left open is named, never ended.
//!
//! Invariant: neither the file nor `FILE-shm` is ever opened here: closing any descriptor of a file drops every POSIX lock
//! that this process has on it, SQLite's included.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal, kill_process};
use sqlx::Row;
use sqlx::sqlite::SqliteConnection;

use super::error::at;
use super::tx;
use super::within::WRITE_LOCK;
use crate::store::StoreError;

/// The byte of `FILE-shm` that is SQLite's write lock in WAL mode (`UNIX_SHM_BASE + WAL_WRITE_LOCK` of its sources).
const WRITE_LOCK_BYTE: u64 = 120;

/// One process, as nothing else ever was or will be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Process {
    boot_id: String,
    pid: i32,
    /// Clock ticks after the boot (`/proc/PID/stat`, field 22).
    started: i64,
}

impl Process {
    /// The process of a number, as the kernel lists it now.
    fn of(pid: i32) -> Option<Self> {
        let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?.trim().to_owned();
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        Some(Self { boot_id, pid, started: started_of(&stat)? })
    }
}

/// Field 22; the second is a name in brackets that may hold anything.
fn started_of(stat: &str) -> Option<i64> {
    let (_, after) = stat.rsplit_once(')')?;
    after.split_whitespace().nth(19)?.parse().ok()
}

/// Lists this process in the file as a replica, and forgets those of other boots.
pub(super) async fn enlist(
    connection: &mut SqliteConnection,
    operation: &'static str,
    replica: &str,
) -> Result<(), StoreError> {
    let own = rustix::process::getpid().as_raw_nonzero().get();
    let Some(process) = Process::of(own) else {
        tracing::warn!(
            "/proc does not show this process: nobody can end it where it stands still with the file's lock"
        );
        return Ok(());
    };
    tx::lock(connection, operation, WRITE_LOCK, || false).await?;
    let written = write(connection, &process, replica).await;
    let ending = if written.is_ok() { "commit" } else { "rollback" };
    let ended = sqlx::raw_sql(ending).execute(connection).await;
    written.and(ended).map(|_| ()).map_err(at(operation))
}

async fn write(connection: &mut SqliteConnection, process: &Process, replica: &str) -> Result<(), sqlx::Error> {
    sqlx::query(include_str!("sql/process_forget.sql"))
        .bind(process.boot_id.as_str())
        .execute(&mut *connection)
        .await?;
    sqlx::query(include_str!("sql/process_enlist.sql"))
        .bind(process.boot_id.as_str())
        .bind(process.pid)
        .bind(process.started)
        .bind(replica)
        .execute(connection)
        .await?;
    Ok(())
}

/// Who holds the write lock of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LockHolder {
    /// Nobody, or nobody that this process may see.
    Unknown,
    /// This process.
    Own,
    /// Another.
    Other {
        /// Its number.
        pid: i32,
        /// The name of its command.
        command: String,
    },
}

/// Who holds the write lock of the file now.
#[must_use]
pub fn lock_holder(file: &Path) -> LockHolder {
    let Some(pid) = pid_of_holder(file) else { return LockHolder::Unknown };
    if pid == rustix::process::getpid().as_raw_nonzero().get() {
        return LockHolder::Own;
    }
    let command = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim().to_owned();
    LockHolder::Other { pid, command }
}

fn pid_of_holder(file: &Path) -> Option<i32> {
    let shared = shared_memory_of(file);
    let found = std::fs::metadata(&shared).ok()?;
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    let device = (rustix_major(found.dev()), rustix_minor(found.dev()));
    holders(&locks, found.ino()).find(|(on, pid)| *on == device || has_open(*pid, &shared)).map(|(_, pid)| pid)
}

fn shared_memory_of(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push("-shm");
    PathBuf::from(name)
}

/// Device and process of those who hold the write byte of a file of this inode, from the kernel's list:
/// `1: POSIX  ADVISORY  WRITE 4711 fd:01:1311 120 120`. One who waits has an arrow after the number.
fn holders(locks: &str, inode: u64) -> impl Iterator<Item = ((u64, u64), i32)> {
    locks.lines().filter_map(move |line| {
        let mut fields = line.split_whitespace().skip(1);
        if fields.next()? != "POSIX" || fields.next().is_none() || fields.next()? != "WRITE" {
            return None;
        }
        let pid: i32 = fields.next()?.parse().ok()?;
        let mut place = fields.next()?.split(':');
        let major = u64::from_str_radix(place.next()?, 16).ok()?;
        let minor = u64::from_str_radix(place.next()?, 16).ok()?;
        let found: u64 = place.next()?.parse().ok()?;
        let first: u64 = fields.next()?.parse().ok()?;
        let last = fields.next()?;
        let covers = first <= WRITE_LOCK_BYTE && (last == "EOF" || last.parse::<u64>().ok()? >= WRITE_LOCK_BYTE);
        (found == inode && covers && pid > 0).then_some(((major, minor), pid))
    })
}

/// Some file systems show another device in the list than in the file: then the process must have the file open.
fn has_open(pid: i32, file: &Path) -> bool {
    let Ok(wanted) = file.canonicalize() else { return false };
    let Ok(open) = std::fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    open.flatten().any(|entry| std::fs::read_link(entry.path()).is_ok_and(|target| target == wanted))
}

fn rustix_major(device: u64) -> u64 {
    ((device >> 32) & 0xffff_f000) | ((device >> 8) & 0xfff)
}

fn rustix_minor(device: u64) -> u64 {
    ((device >> 12) & 0xffff_ff00) | (device & 0xff)
}

/// What became of a holder that was to be ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ending {
    /// It is a listed replica, and was told to end.
    Ended { pid: i32, replica: String },
    /// It is none: named, and left alone.
    Stranger { pid: i32, command: String },
    /// Nobody holds it, or this process does.
    Nobody,
}

/// Ends whoever holds the file's write lock, if it is a replica that is listed in the file. Reads only, so that the lock is
/// not needed for it.
pub(super) async fn end_holder(
    connection: &mut SqliteConnection,
    operation: &'static str,
    file: &Path,
) -> Result<Ending, StoreError> {
    let LockHolder::Other { pid, command } = lock_holder(file) else { return Ok(Ending::Nobody) };
    let Some(process) = Process::of(pid) else { return Ok(Ending::Nobody) };
    let row = sqlx::query(include_str!("sql/process_listed.sql"))
        .bind(process.boot_id.as_str())
        .bind(process.pid)
        .bind(process.started)
        .fetch_optional(connection)
        .await
        .map_err(at(operation))?;
    let Some(row) = row else { return Ok(Ending::Stranger { pid, command }) };
    let replica: String = row.try_get("replica").map_err(at(operation))?;
    // Looked at again: the lock may have passed on, and the number to another process, while the list was read.
    if pid_of_holder(file) != Some(pid) || Process::of(pid).as_ref() != Some(&process) {
        return Ok(Ending::Nobody);
    }
    let Some(target) = Pid::from_raw(pid) else { return Ok(Ending::Nobody) };
    match kill_process(target, Signal::KILL) {
        Ok(()) => Ok(Ending::Ended { pid, replica }),
        Err(error) => {
            tracing::error!(pid, replica, %error, "a replica that holds the file's write lock could not be ended");
            Ok(Ending::Stranger { pid, command })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCKS: &str = "\
1: POSIX  ADVISORY  READ 10 08:01:77 123 123
2: POSIX  ADVISORY  WRITE 11 08:01:77 120 120
2: -> POSIX  ADVISORY  WRITE 12 08:01:77 120 120
3: POSIX  ADVISORY  WRITE 13 08:01:78 120 120
4: FLOCK  ADVISORY  WRITE 14 08:01:77 0 EOF
5: POSIX  ADVISORY  WRITE 15 fd:1f:79 121 122
6: POSIX  ADVISORY  WRITE 16 fd:1f:79 120 127
";

    #[test]
    fn the_kernels_list_names_the_holder_of_the_write_byte() {
        assert_eq!(holders(LOCKS, 77).collect::<Vec<_>>(), [((8, 1), 11)]);
        assert_eq!(holders(LOCKS, 79).collect::<Vec<_>>(), [((0xfd, 0x1f), 16)]);
        assert_eq!(holders(LOCKS, 80).next(), None);
    }

    #[test]
    fn a_process_is_known_by_its_start() {
        let own = rustix::process::getpid().as_raw_nonzero().get();
        let process = Process::of(own).expect("this process");
        assert_eq!(Process::of(own), Some(process.clone()));
        assert!(process.started > 0);
        assert_eq!(started_of("1 (a) b) c) S 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 4711 22"), Some(4711));
    }
}

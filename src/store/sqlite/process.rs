//! Replicas that have the file open, listed in it, and the end of one that stands still with its write lock.
//!
//! A replica that stands still inside a write transaction locks every other out, and SQLite has no way to end it. The kernel
//! knows who holds the lock (see [`crate::hostproc`]). Ended is only a process that listed itself in this very file, and only
//! after it neither computed nor wrote for long enough: one that works on another election's batch has the same lock, and is
//! alive. So is one that waits for its disk, which shows as little: where the kernel does not call it stopped, long enough is
//! much longer. A `sqlite3` shell that somebody left open is named, never ended.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use sqlx::Row;
use sqlx::sqlite::{SqliteConnection, SqliteRow};

use super::error::at;
use super::tx;
use crate::hostproc::{self, Ending, Holder, ProcessMark};
use crate::store::StoreError;

/// The longest that opening a file waits to list its process. Where the lock is not to be had, the process lists itself when
/// it leads: nobody else keeps the lock for long.
const LISTING: Duration = Duration::from_secs(1);

/// Lists this process in the file as a replica, where the write lock is to be had soon.
pub(super) async fn enlist(
    connection: &mut SqliteConnection,
    operation: &'static str,
    replica: &str,
) -> Result<(), StoreError> {
    match tx::lock(connection, operation, LISTING).await {
        Ok(()) => {}
        Err(error @ StoreError::TryAgain { .. }) => {
            tracing::info!(%error, "this process is listed in the file once it leads");
            return Ok(());
        }
        Err(error) => return Err(error),
    }
    let listed = list(connection, operation, replica).await;
    let ending = if listed.is_ok() { "commit" } else { "rollback" };
    let ended = sqlx::raw_sql(ending).execute(connection).await.map_err(at(operation));
    listed.and(ended.map(|_| ()))
}

/// Lists this process, inside of a transaction that writes, and forgets those that are gone.
pub(super) async fn list(
    connection: &mut SqliteConnection,
    operation: &'static str,
    replica: &str,
) -> Result<(), StoreError> {
    match ProcessMark::own() {
        Ok(own) => write(connection, &own, replica).await.map_err(at(operation)),
        Err(error) => {
            tracing::warn!(%error, "nobody can end this process where it stands still with the file's write lock");
            Ok(())
        }
    }
}

async fn write(connection: &mut SqliteConnection, own: &ProcessMark, replica: &str) -> Result<(), sqlx::Error> {
    for found in &read(connection).await? {
        if found.boot_id != own.boot_id || matches!(found.lives(), Ok(false)) {
            sqlx::query(include_str!("sql/process_forget.sql"))
                .bind(found.boot_id.as_str())
                .bind(found.pid)
                .bind(found.started)
                .execute(&mut *connection)
                .await?;
        }
    }
    sqlx::query(include_str!("sql/process_enlist.sql"))
        .bind(own.boot_id.as_str())
        .bind(own.pid)
        .bind(own.started)
        .bind(replica)
        .execute(connection)
        .await
        .map(|_| ())
}

async fn read(connection: &mut SqliteConnection) -> Result<Vec<ProcessMark>, sqlx::Error> {
    let rows = sqlx::query(include_str!("sql/processes.sql")).fetch_all(connection).await?;
    rows.iter().map(mark_of).collect()
}

fn mark_of(row: &SqliteRow) -> Result<ProcessMark, sqlx::Error> {
    Ok(ProcessMark { boot_id: row.try_get("boot_id")?, pid: row.try_get("pid")?, started: row.try_get("started")? })
}

/// One look at another process that holds the file's write lock. Two that are equal, with time in between, found it at a
/// standstill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Look {
    pub(super) holder: Holder,
    /// Clock ticks that it has computed for.
    computed: u64,
    /// Size and time of the log: whoever commits, or has much to write, changes them.
    log: Option<(u64, i64, i64)>,
    /// The kernel calls it, or one of its threads, stopped: by a signal or a debugger. A frozen one it does not.
    pub(super) stopped: bool,
}

/// Looks at who holds the file's write lock; `None` where nobody does that can be seen, or this process.
pub(super) fn look(file: &Path) -> Option<Look> {
    let holder = hostproc::write_lock_holder(file).ok()??;
    if ProcessMark::own().is_ok_and(|own| own == holder.mark) {
        return None;
    }
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", holder.mark.pid)).ok()?;
    let mut name = file.as_os_str().to_owned();
    name.push("-wal");
    let log = std::fs::metadata(name).ok().map(|log| (log.size(), log.mtime(), log.mtime_nsec()));
    let stopped = is_stopped(holder.mark.pid, &stat);
    Some(Look { holder, computed: computed(&stat)?, log, stopped })
}

fn is_stopped(pid: i32, stat: &str) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let mut states = threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("stat")).ok());
    says_stopped(stat) || states.any(|stat| says_stopped(&stat))
}

/// Field 3: `T` by a signal, `t` by a debugger.
fn says_stopped(stat: &str) -> bool {
    stat.rsplit_once(')').is_some_and(|(_, after)| matches!(after.split_whitespace().next(), Some("T" | "t")))
}

/// Time in user and kernel mode: fields 14 and 15. The second field is a command in brackets that may hold anything.
fn computed(stat: &str) -> Option<u64> {
    let (_, after) = stat.rsplit_once(')')?;
    let mut fields = after.split_whitespace().skip(11);
    let (user, kernel): (u64, u64) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    user.checked_add(kernel)
}

/// Ends the holder, if it is a replica that is listed in the file; `None` where it is one and is to be `spared`. Reads only, so that
/// the lock is not needed for it.
pub(super) async fn end(
    connection: &mut SqliteConnection,
    operation: &'static str,
    holder: &Holder,
    spared: bool,
) -> Result<Option<Ending>, StoreError> {
    let listed = read(connection).await.map_err(at(operation))?;
    if spared && listed.contains(&holder.mark) {
        return Ok(None);
    }
    hostproc::end(&holder.mark, &listed)
        .map(Some)
        .map_err(|error| StoreError::Broken { operation, detail: format!("{holder} could not be ended: {error}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_computed_is_the_sum_of_both_modes() {
        assert_eq!(computed("1 (a) b) c) S 4 5 6 7 8 9 10 11 12 13 1400 1500 16"), Some(2900));
        assert_eq!(computed("1 (a) S 4"), None);
    }

    #[test]
    fn stopped_is_what_a_signal_or_a_debugger_stops_and_not_what_waits() {
        for (stat, stopped) in
            [("1 (a) T 4", true), ("1 (T) t) t 4", true), ("1 (T) D 4", false), ("1 (a) S 4", false), ("", false)]
        {
            assert_eq!(says_stopped(stat), stopped, "{stat}");
        }
    }
}

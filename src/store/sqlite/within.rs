//! A bound for every call of the database. Dropping the call on time stops nothing in the connection's thread: who gives a
//! call up also drops its session (see [`super::sessions`]), which interrupts what runs.

use std::time::Duration;

use crate::store::StoreError;

/// Opening one session: file, settings, their check.
pub(super) const CONNECT: Duration = Duration::from_secs(10);

/// The health check, all of it.
pub(super) const HEALTH: Duration = Duration::from_secs(2);

/// One operation of the control pool, the wait for the write lock included.
pub(super) const CONTROL: Duration = Duration::from_secs(10);

/// The longest wait for the file's write lock outside of tenures, which bring a bound of their own. Waits are not fair: one
/// of 2 s is nothing unusual where several processes write.
pub(super) const WRITE_LOCK: Duration = Duration::from_secs(8);

/// The same for a command: a person waits, and a long batch is no reason to send them away.
pub(super) const WRITE_LOCK_COMMAND: Duration = Duration::from_mins(1);

/// How long SQLite itself waits for a lock before it says that it is busy. Short, for nobody can interrupt that wait; the
/// bounds above are kept by asking again.
pub(super) const BUSY_SLICE: Duration = Duration::from_millis(100);

/// The longest pause before the write lock is asked for again.
pub(super) const BUSY_PAUSE: Duration = Duration::from_millis(5);

/// The fence's answer, once the lock is there.
pub(super) const ENTER: Duration = Duration::from_secs(5);

/// ROLLBACK. Past it the session is dropped instead.
pub(super) const ROLLBACK: Duration = Duration::from_secs(2);

/// The answer to COMMIT. Past it the outcome is unknown.
pub(super) const COMMIT: Duration = Duration::from_secs(10);

/// Seeing a dropped session gone. Best effort.
pub(super) const ABANDON: Duration = Duration::from_secs(3);

/// Writing down a refusal. Best effort.
pub(super) const REJECT: Duration = Duration::from_secs(3);

/// Reading for a person (status, lists, history).
pub(super) const READ: Duration = Duration::from_secs(30);

/// The most that commands with one long transaction (import, revert, audit, migrate) may take.
pub(super) const COMMAND: Duration = Duration::from_hours(1);

/// Waits for `work`, at most `bound`.
///
/// # Errors
/// [`StoreError::TimedOut`] past the bound, else what `work` says.
pub(super) async fn within<T>(
    operation: &'static str,
    bound: Duration,
    work: impl Future<Output = Result<T, StoreError>>,
) -> Result<T, StoreError> {
    match tokio::time::timeout(bound, work).await {
        Ok(result) => result,
        Err(_) => Err(StoreError::TimedOut { operation, within: bound }),
    }
}

//! A bound for every call of the database. Dropping the call on time stops nothing on the server: who gives a call up
//! also drops its session (see [`super::sessions`]).

use std::time::Duration;

use crate::store::StoreError;

/// Opening one session: TCP, TLS, authentication, settings.
pub(super) const CONNECT: Duration = Duration::from_secs(2);

/// Whether an idle session still answers.
pub(super) const PING: Duration = Duration::from_millis(500);

/// Opening one session for a command: a person waits, and a busy database is no reason to send them away.
pub(super) const CONNECT_COMMAND: Duration = Duration::from_secs(10);

/// The health check, all of it.
pub(super) const HEALTH: Duration = Duration::from_secs(2);

/// One statement of the control pool.
pub(super) const CONTROL: Duration = Duration::from_secs(5);

/// BEGIN and the fence's answer, beyond the time-out for locks.
pub(super) const ENTER: Duration = Duration::from_secs(5);

/// ROLLBACK. Past it the session is ended instead.
pub(super) const ROLLBACK: Duration = Duration::from_secs(2);

/// The answer to COMMIT. Past it the outcome is unknown.
pub(super) const COMMIT: Duration = Duration::from_secs(10);

/// Ending one session whose transaction is in an unknown state, and seeing it gone. Best effort.
pub(super) const ABANDON: Duration = Duration::from_secs(3);

/// Writing down a refusal. Best effort.
pub(super) const REJECT: Duration = Duration::from_secs(1);

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

//! Bounds on what a store keeps, the same in every store.

use std::time::Duration;

/// The most characters of an error that are kept with a unit or an instruction.
pub(crate) const ERROR_CHARACTERS: usize = 1000;

/// An error as it is kept.
pub(crate) fn bounded(error: &str) -> String {
    // A NUL cannot be stored as text.
    error.chars().filter(|character| *character != '\0').take(ERROR_CHARACTERS).collect()
}

/// The longest wait before another attempt: a year, so that the store's time stays in its range.
const LONGEST_WAIT: Duration = Duration::from_hours(366 * 24);

/// A wait as it is kept: whole milliseconds.
pub(crate) fn wait(wait: Duration) -> Duration {
    Duration::from_millis(u64::try_from(wait.min(LONGEST_WAIT).as_millis()).unwrap_or(0))
}

/// Open runs of one job, or of one of its requests, that are looked at from the oldest on and from the newest back. More than
/// may be worked on at a time, so that whichever comes next is among them.
pub(crate) const OPEN_RUNS: u32 = 200;

/// The most rows of a list.
pub(crate) const LIST_ROWS: u32 = 10_000;

//! The schedule: from an expression and a zone to ticks, and from ticks to what becomes of them. Pure: times come in as
//! arguments, nothing here reads a clock, a store or a file, and the same arguments give the same answer on every replica.
//!
//! - [`cron`]: which local times an expression names.
//! - [`wall`]: those times on the time line, through gaps and folds of the zone.
//! - [`plan`]: ticks in the order of their due times, page by page; cutoffs and value dates.
//! - [`misfire`]: the outcome of every due tick after an absence, a pause or an edit.
//! - [`queue`]: which of a job's open runs may be worked on now.
//!
//! Invariants:
//! - A tick is identified by its nominal instant. Ticks of a definition are strictly increasing: never two at one instant.
//! - Each tick whose due time is passed by `evaluated_until` got exactly one outcome; `evaluated_until` never goes back.
//! - Everything is bounded: a search by years, a page by ticks. A page says up to where it is complete.
//!
//! Deliberately absent: calendars. Every due time is its nominal time, and a business day is Monday to Friday, until
//! calendars exist; [`plan`] has the one place that they change.

pub mod cron;
mod field;
pub mod misfire;
pub mod plan;
pub mod queue;
pub mod wall;

/// The release of the IANA zone data in the binary, such as `2025b`. A government that changes its clock is right from the
/// release that knows of it on; `scripts/ticks` compares with a newer one.
pub const ZONE_DATA: &str = chrono_tz::IANA_TZDB_VERSION;

pub use cron::{Cron, CronError, DAY_RULE, default_rules};
pub use misfire::{Outcome, Scan, ScanState, TickDecision, decide, settle_edit};
pub use plan::{Schedule, ScheduleError, Tick, TickPage};
pub use queue::{QueuedRun, eligible_runs};
pub use wall::TickNote;

#[cfg(test)]
mod test_timing;

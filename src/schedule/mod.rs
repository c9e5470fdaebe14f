//! The schedule: from an expression and a zone to ticks, and from ticks to what becomes of them. Pure: times come in as
//! arguments, nothing here reads a clock, a store or a file, and the same arguments give the same answer on every replica.
//!
//! - [`cron`]: which local times an expression names.
//! - [`wall`]: those times on the time line, through gaps and folds of the zone.
//! - [`backfill`]: which ticks are run once more where that is asked for.
//! - [`calendar`]: business days, built-in and own, and where a tick goes that falls on a day off.
//! - [`plan`]: ticks in the order of their due times, page by page; cutoffs and value dates.
//! - [`mod@compare`]: what an edit does to coming ticks.
//! - [`misfire`]: the outcome of every due tick after an absence, a pause or an edit.
//! - [`zones`]: what the zone data in the binary does not know.
//! - [`queue`]: which of a job's open runs may be worked on now.
//!
//! Invariants:
//! - A tick is identified by its nominal instant. Ticks of a definition are strictly increasing: never two at one instant.
//! - Each tick whose due time is passed by `evaluated_until` got exactly one outcome; `evaluated_until` never goes back.
//! - Everything is bounded: a search by years, a page by ticks. A page says up to where it is complete.

pub mod backfill;
pub mod calendar;
pub mod compare;
pub mod cron;
mod field;
pub mod misfire;
pub mod plan;
pub mod queue;
mod rolled;
pub mod wall;
pub mod zones;

pub use backfill::{BACKFILL_TICKS, backfilled};
pub use compare::{TickChanges, compare};
pub use cron::{Cron, CronError, DAY_RULE, default_rules};
pub use misfire::{Outcome, Scan, ScanState, TickDecision, decide, settle_edit};
pub use plan::{DayOff, Schedule, ScheduleError, Tick, TickPage};
pub use queue::{QueuedRun, eligible_runs};
pub use wall::TickNote;
pub use zones::ZONE_DATA;

#[cfg(test)]
mod test_timing;

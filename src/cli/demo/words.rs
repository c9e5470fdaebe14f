//! Runs in words, for a line on the screen.

use std::fmt::Write as _;

use super::sight::ended_units;
use crate::store::RunSummary;

/// How far a run is.
pub(super) fn of_run(run: &RunSummary) -> String {
    format!("run {} has {} of {} units", run.id, ended_units(run), run.units.total)
}

/// What came of a run.
pub(super) fn ended_run(run: &RunSummary) -> String {
    let units = run.units;
    let mut text = format!("run {} of {}: {} units settled", run.id, run.tick.format("%H:%M:%S"), units.settled);
    for (count, what) in [(units.carried, "carried"), (units.empty, "empty"), (units.set_aside, "set aside")] {
        if count > 0 {
            let _written = write!(text, ", {count} {what}");
        }
    }
    text
}

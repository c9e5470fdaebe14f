//! Which ticks a backfill is about. Asked by the leader that executes it and by the dry run, so that both say the same.

use chrono::{DateTime, TimeDelta, Utc};

use super::plan::{DayOff, Schedule, Tick};

/// The most ticks of one backfill.
pub const BACKFILL_TICKS: usize = 500;

/// The ticks due in [from, to], in order, without those on days off that are skipped.
///
/// # Errors
/// Why not, for a person: the span ends before it begins or in the future, or has no tick, or too many.
pub fn backfilled(
    schedule: &Schedule,
    now: DateTime<Utc>,
    from: DateTime<Utc>,
    to: DateTime<Utc>,
) -> Result<Vec<Tick>, String> {
    if from > to {
        return Err(format!("the span begins at {from}, after its end {to}"));
    }
    if to > now {
        return Err(format!("the span ends at {to}, in the future of the store's time {now}"));
    }
    let after = from.checked_sub_signed(TimeDelta::nanoseconds(1)).unwrap_or(from);
    let due = schedule.ticks_after(after).take_while(|tick| tick.due_at <= to);
    let ticks: Vec<Tick> = due.filter(|tick| tick.day_off != Some(DayOff::Skipped)).take(BACKFILL_TICKS + 1).collect();
    if ticks.is_empty() {
        return Err(format!("no tick falls due from {from} to {to}"));
    }
    if ticks.len() > BACKFILL_TICKS {
        return Err(format!(
            "more than {BACKFILL_TICKS} ticks fall due from {from} to {to}, expected at most {BACKFILL_TICKS}: ask for parts of it"
        ));
    }
    Ok(ticks)
}

//! Coming ticks as people read them: in UTC, on the job's own clock with its offset, with what the zone and the calendar do.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, Utc};
use serde::Serialize;

use super::output::time;
use crate::schedule::{DayOff, Schedule, Tick, TickNote};

/// One tick to come.
#[derive(Debug, Clone, Serialize)]
pub(super) struct ComingTick {
    /// Nominal: its identity.
    pub(super) tick: DateTime<Utc>,
    /// The nominal time on the job's clock.
    pub(super) local: String,
    /// That clock's offset from UTC then.
    pub(super) offset: String,
    /// After rolls.
    pub(super) due_at: DateTime<Utc>,
    /// The due time on the job's clock.
    pub(super) due_local: String,
    /// Entries available before it are in.
    pub(super) cutoff_at: DateTime<Utc>,
    /// The day on which its money counts.
    pub(super) value_date: NaiveDate,
    /// Whether it opens a run: false on a day off whose ticks are skipped, and where it is coalesced into another's run.
    pub(super) runs: bool,
    /// What the zone or the calendar does to it.
    pub(super) notes: Vec<String>,
}

impl ComingTick {
    pub(super) fn of(schedule: &Schedule, tick: &Tick) -> Self {
        let zone = schedule.timing().timezone;
        let local = |at: DateTime<Utc>| at.with_timezone(&zone).format("%a %Y-%m-%d %H:%M:%S %Z").to_string();
        Self {
            tick: tick.nominal,
            local: local(tick.nominal),
            offset: tick.nominal.with_timezone(&zone).format("%:z").to_string(),
            due_at: tick.due_at,
            due_local: local(tick.due_at),
            cutoff_at: schedule.cutoff_at(tick.due_at),
            value_date: schedule.value_date(tick.due_at),
            runs: tick.day_off != Some(DayOff::Skipped),
            notes: notes(schedule, tick),
        }
    }

    /// A row of a table; its columns are [`COLUMNS`].
    pub(super) fn row(&self) -> Vec<String> {
        let due = if self.due_at == self.tick { "then".to_owned() } else { time(self.due_at) };
        vec![
            time(self.tick),
            format!("{} {}", self.local, self.offset),
            due,
            time(self.cutoff_at),
            self.notes.join("; "),
        ]
    }
}

/// Marks ticks that are due together with one before them: they are coalesced into its run.
pub(super) fn coalesced(ticks: &mut [ComingTick]) {
    let mut first: BTreeMap<DateTime<Utc>, DateTime<Utc>> = BTreeMap::new();
    for tick in ticks.iter_mut().filter(|tick| tick.runs) {
        if let Some(into) = first.get(&tick.due_at) {
            tick.runs = false;
            tick.notes.push(format!("due together with {}: coalesced into its run", time(*into)));
        } else {
            first.insert(tick.due_at, tick.tick);
        }
    }
}

/// The columns of [`ComingTick::row`].
pub(super) const COLUMNS: [&str; 5] = ["tick", "local", "due", "cutoff", "notes"];

/// What the zone and the calendar do to a tick, in words.
pub(super) fn notes(schedule: &Schedule, tick: &Tick) -> Vec<String> {
    let zone = tick.note.map(note);
    let calendar = tick.day_off.map(|day_off| {
        let name = schedule.calendar().map_or("", |calendar| calendar.name());
        match day_off {
            DayOff::Moved => format!("a day off in {name}: due on {}", schedule.value_date(tick.due_at)),
            DayOff::Skipped => format!("a day off in {name}: recorded as skipped"),
        }
    });
    zone.into_iter().chain(calendar).collect()
}

fn note(note: TickNote) -> String {
    match note {
        TickNote::Shifted { from } => format!("{from} does not exist there and is shifted to it"),
        TickNote::Joined { from } => format!("{from} does not exist there and falls together with it"),
        TickNote::FirstOfTwo => "the local time exists twice; this is the first".to_owned(),
        TickNote::SecondOfTwo => "the local time exists twice; this is the second".to_owned(),
    }
}

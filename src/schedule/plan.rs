//! The ticks of one definition in the order in which they fall due, and what belongs to each: cutoff and value date.
//!
//! A tick has a nominal time (its identity) and a due time (when it is to be run). Calendars will roll due times by days,
//! so a scan is by due time and looks at nominal times a roll's reach to either side; `Roll` is the one place that
//! knows. Order: due time, then nominal time.
//!
//! Bounds: [`PAGE_TICKS`] ticks a page (more only where ticks share the last due time), [`CALL_TICKS`] of an iterator,
//! [`SEARCH_YEARS`] of searching.
//!
//! Deliberately absent: calendars, so `Roll` has one case, and business days are Monday to Friday.

use std::collections::BTreeMap;

use chrono::{DateTime, Datelike, Days, NaiveDate, NaiveDateTime, TimeDelta, Utc, Weekday};

use super::cron::{Cron, CronError};
use super::wall::{self, TickNote, Walk};
use crate::domain::job::{CutoffRule, GapRule, Timing};

/// Ticks of one page. A page that is full says up to which due time it is complete.
pub const PAGE_TICKS: usize = 1_000;
/// Ticks of one [`Schedule::ticks_after`].
pub const CALL_TICKS: usize = 100_000;
/// How far ahead a next tick is searched. The rarest expression there is (a fifth weekday of February) pauses 40 years.
pub const SEARCH_YEARS: i64 = 100;
/// The most business days of a cutoff that are counted back; a larger number counts as this one.
pub const CUTOFF_DAYS: u32 = 366;

/// Why a job's timing cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScheduleError {
    /// The expression.
    #[error(transparent)]
    Cron(#[from] CronError),
}

/// One nominal fire time of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tick {
    /// Its identity; whole seconds.
    pub nominal: DateTime<Utc>,
    /// When it is to be run.
    pub due_at: DateTime<Utc>,
    /// What the zone did to it.
    pub note: Option<TickNote>,
}

/// A part of the ticks asked for, in the order of due and then nominal time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TickPage {
    /// The ticks.
    pub ticks: Vec<Tick>,
    /// All ticks due up to here (included) are in; the next page begins after it.
    pub complete_until: DateTime<Utc>,
    /// Whether more follow, up to the end that was asked for.
    pub more: bool,
}

/// How a nominal time becomes a due time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Roll {
    /// It is the due time.
    None,
    /// A calendar of the tests: weekends move to the Monday after them, or to the Friday before where that is in another
    /// month; times of day stay.
    #[cfg(test)]
    Monday,
}

impl Roll {
    fn due_at(self, nominal: DateTime<Utc>) -> DateTime<Utc> {
        match self {
            Self::None => nominal,
            #[cfg(test)]
            Self::Monday => {
                let weekday = i64::from(nominal.weekday().num_days_from_monday());
                let forward = nominal + TimeDelta::days(if weekday < 5 { 0 } else { 7 - weekday });
                if forward.month() == nominal.month() { forward } else { nominal - TimeDelta::days(weekday - 4) }
            }
        }
    }

    /// The longest way between a nominal time and its due time.
    const fn reach(self) -> TimeDelta {
        match self {
            Self::None => TimeDelta::zero(),
            #[cfg(test)]
            Self::Monday => TimeDelta::days(31),
        }
    }
}

/// A job's timing, read and ready.
#[derive(Debug, Clone)]
pub struct Schedule {
    timing: Timing,
    cron: Cron,
    roll: Roll,
}

impl Schedule {
    /// Reads a timing.
    ///
    /// # Errors
    /// [`ScheduleError`]: the expression is wrong, or never occurs.
    pub fn new(timing: &Timing) -> Result<Self, ScheduleError> {
        Ok(Self { cron: Cron::parse(&timing.cron)?, timing: timing.clone(), roll: Roll::None })
    }

    /// The timing it was made from.
    #[must_use]
    pub const fn timing(&self) -> &Timing {
        &self.timing
    }

    /// Its expression.
    #[must_use]
    pub const fn cron(&self) -> &Cron {
        &self.cron
    }

    /// The ticks due after an instant, in order, at most [`CALL_TICKS`] and within [`SEARCH_YEARS`].
    pub fn ticks_after(&self, after: DateTime<Utc>) -> impl Iterator<Item = Tick> + '_ {
        let last = after.checked_add_signed(TimeDelta::days(SEARCH_YEARS * 366)).unwrap_or(DateTime::<Utc>::MAX_UTC);
        self.by_due(after, last).take(CALL_TICKS)
    }

    /// The first tick due after an instant; `None` where there is none within [`SEARCH_YEARS`].
    #[must_use]
    pub fn next_after(&self, after: DateTime<Utc>) -> Option<Tick> {
        self.ticks_after(after).next()
    }

    /// The ticks due in (after, until], a page of them.
    #[must_use]
    pub fn ticks_between(&self, after: DateTime<Utc>, until: DateTime<Utc>) -> TickPage {
        let mut ticks: Vec<Tick> = Vec::new();
        for tick in self.by_due(after, until) {
            match ticks.last() {
                Some(last) if ticks.len() >= PAGE_TICKS && tick.due_at > last.due_at => {
                    return TickPage { complete_until: last.due_at, ticks, more: true };
                }
                Some(_) | None => ticks.push(tick),
            }
        }
        TickPage { ticks, complete_until: until, more: false }
    }

    /// The last tick due in (after, until].
    #[must_use]
    pub fn latest_between(&self, after: DateTime<Utc>, until: DateTime<Utc>) -> Option<Tick> {
        self.last_ticks(after, until, 1).pop()
    }

    /// The last ticks due in (after, until], at most `most` of them, in order. Searched backwards in growing steps.
    #[must_use]
    pub fn last_ticks(&self, after: DateTime<Utc>, until: DateTime<Utc>, most: usize) -> Vec<Tick> {
        let mut found: Vec<Tick> = Vec::new();
        let mut end = until;
        let mut step = TimeDelta::minutes(1);
        while end > after && found.len() < most {
            let start = end.checked_sub_signed(step).map_or(after, |start| start.max(after));
            found = self.by_due(start, end).chain(found).collect();
            end = start;
            step = step * 4;
        }
        found.split_off(found.len().saturating_sub(most))
    }

    /// Of the ticks due at an instant, the first by nominal time.
    #[must_use]
    pub fn first_due_at(&self, due_at: DateTime<Utc>) -> Option<Tick> {
        self.by_due(due_at - TimeDelta::seconds(1), due_at).next()
    }

    /// The local times named in (after, until] that do not exist and that `gap = "skip"` leaves out, each at the instant to
    /// which it would have been moved; at most [`PAGE_TICKS`]. For people who read a plan. Every tick in between is walked
    /// over: ask for days of a job that repeats by the minute, not for years.
    #[must_use]
    pub fn left_out_between(&self, after: DateTime<Utc>, until: DateTime<Utc>) -> Vec<(DateTime<Utc>, NaiveDateTime)> {
        let Timing { timezone, gap, fold, .. } = self.timing;
        match gap {
            GapRule::Shift => Vec::new(),
            GapRule::Skip => {
                let (first, last) = (after.timestamp().saturating_add(1), until.timestamp());
                Walk::new(&self.cron, timezone, GapRule::Shift, fold, first, last)
                    .filter_map(|placed| match placed.note? {
                        TickNote::Shifted { from } | TickNote::Joined { from } => {
                            Some((wall::instant(placed.second)?, from))
                        }
                        TickNote::FirstOfTwo | TickNote::SecondOfTwo => None,
                    })
                    .take(PAGE_TICKS)
                    .collect()
            }
        }
    }

    fn by_due(&self, after: DateTime<Utc>, until: DateTime<Utc>) -> ByDue<'_> {
        let reach = self.roll.reach();
        let first = after.checked_sub_signed(reach).unwrap_or(DateTime::<Utc>::MIN_UTC).timestamp().saturating_add(1);
        let last = until.checked_add_signed(reach).unwrap_or(DateTime::<Utc>::MAX_UTC).timestamp();
        let Timing { timezone, gap, fold, .. } = self.timing;
        ByDue {
            walk: Walk::new(&self.cron, timezone, gap, fold, first, last),
            roll: self.roll,
            after,
            until,
            pending: BTreeMap::new(),
            seen: None,
        }
    }

    /// Entries available before this instant belong to a run due then. Never after the due time. A cutoff in business
    /// days counts days of the job's zone; a local time that does not exist is moved forward, of two the first counts.
    #[must_use]
    pub fn cutoff_at(&self, due_at: DateTime<Utc>) -> DateTime<Utc> {
        match self.timing.cutoff {
            CutoffRule::Before(span) => TimeDelta::from_std(span)
                .ok()
                .and_then(|span| due_at.checked_sub_signed(span))
                .unwrap_or(DateTime::<Utc>::MIN_UTC),
            CutoffRule::BusinessDays { days, at } => {
                let day = business_days_before(self.value_date(due_at), days.min(CUTOFF_DAYS));
                wall::place(self.timing.timezone, day.and_time(at)).map_or(due_at, |cutoff| cutoff.min(due_at))
            }
        }
    }

    /// The day on which the money of a run counts: the due day in the job's zone.
    #[must_use]
    pub fn value_date(&self, due_at: DateTime<Utc>) -> NaiveDate {
        due_at.with_timezone(&self.timing.timezone).date_naive()
    }
}

/// That many business days before a day; none is the day itself, business day or not.
fn business_days_before(day: NaiveDate, days: u32) -> NaiveDate {
    let mut day = day;
    let mut left = days;
    while left > 0 {
        let Some(before) = day.checked_sub_days(Days::new(1)) else { break };
        day = before;
        match day.weekday() {
            Weekday::Sat | Weekday::Sun => {}
            Weekday::Mon | Weekday::Tue | Weekday::Wed | Weekday::Thu | Weekday::Fri => left -= 1,
        }
    }
    day
}

/// Ticks by due time: a walk over nominal times that holds each back until none that follows can be due before it.
struct ByDue<'a> {
    walk: Walk<'a>,
    roll: Roll,
    after: DateTime<Utc>,
    until: DateTime<Utc>,
    pending: BTreeMap<(DateTime<Utc>, DateTime<Utc>), Tick>,
    /// The last nominal time walked over.
    seen: Option<DateTime<Utc>>,
}

impl Iterator for ByDue<'_> {
    type Item = Tick;

    fn next(&mut self) -> Option<Tick> {
        loop {
            if let (Some(seen), Some(first)) = (self.seen, self.pending.first_entry())
                && first.key().0 <= seen - self.roll.reach()
            {
                return Some(first.remove());
            }
            let Some((nominal, note)) = self.walk.next().and_then(|at| Some((wall::instant(at.second)?, at.note)))
            else {
                return self.pending.pop_first().map(|(_, tick)| tick);
            };
            self.seen = Some(nominal);
            let due_at = self.roll.due_at(nominal);
            if due_at > self.after && due_at <= self.until {
                self.pending.insert((due_at, nominal), Tick { nominal, due_at, note });
            }
        }
    }
}

#[cfg(test)]
impl Schedule {
    /// The same with the calendar of the tests.
    pub(super) fn rolled(mut self) -> Self {
        self.roll = Roll::Monday;
        self
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
pub(super) mod tests;

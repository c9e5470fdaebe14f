//! The ticks of one definition in the order in which they fall due, and what belongs to each: cutoff and value date.
//!
//! A tick has a nominal time (its identity) and a due time (when it is to be run). A calendar rolls due times by days
//! (`rolled`), up to a month to either side. Order: due time, then nominal time.
//!
//! Bounds: [`PAGE_TICKS`] ticks a page (more only where ticks share the last due time), [`CALL_TICKS`] of an iterator,
//! [`SEARCH_YEARS`] of searching.

use chrono::{DateTime, NaiveDate, NaiveDateTime, TimeDelta, Utc};

use super::calendar::{Calendar, weekends_only};
use super::cron::{Cron, CronError};
use super::rolled::Rolled;
use super::wall::{self, TickNote, Walk};
use crate::domain::calendar::Roll;
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
    /// What the calendar did to it.
    pub day_off: Option<DayOff>,
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

/// What the job's calendar did to a tick on a day off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DayOff {
    /// It is due on the business day that it was rolled to.
    Moved,
    /// It is due when it was named, and recorded as skipped.
    Skipped,
}

/// A job's timing, read and ready.
#[derive(Debug, Clone)]
pub struct Schedule {
    timing: Timing,
    cron: Cron,
    /// Its business days, and what becomes of ticks on others.
    business_days: Option<(Calendar, Roll)>,
}

impl Schedule {
    /// Reads a timing.
    ///
    /// # Errors
    /// [`ScheduleError`]: the expression is wrong, or never occurs.
    pub fn new(timing: &Timing) -> Result<Self, ScheduleError> {
        let business_days = timing.business_days.as_ref().map(|days| (Calendar::new(&days.calendar), days.roll));
        Ok(Self { cron: Cron::parse(&timing.cron)?, timing: timing.clone(), business_days })
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

    /// Its calendar, where it has one.
    #[must_use]
    pub fn calendar(&self) -> Option<&Calendar> {
        self.business_days.as_ref().map(|(calendar, _)| calendar)
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
        self.backwards(after, until, |ticks| {
            found.splice(0..0, ticks.iter().copied());
            found.len() < most
        });
        found.split_off(found.len().saturating_sub(most))
    }

    /// The ticks due at an instant, by nominal time.
    #[must_use]
    pub fn due_at(&self, due_at: DateTime<Utc>) -> Vec<Tick> {
        self.by_due(due_at - TimeDelta::seconds(1), due_at).collect()
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

    /// The ticks due in (after, until], in order.
    fn by_due(&self, after: DateTime<Utc>, until: DateTime<Utc>) -> ByDue<'_> {
        match &self.business_days {
            Some((calendar, roll @ (Roll::Following | Roll::ModifiedFollowing | Roll::Preceding))) => {
                ByDue::Rolled(Rolled::new(&self.cron, &self.timing, (calendar, *roll), after, until))
            }
            Some((_, Roll::Skip)) | None => {
                let (first, last) = (after.timestamp().saturating_add(1), until.timestamp());
                let Timing { timezone, gap, fold, .. } = self.timing;
                ByDue::AsNamed(self, Walk::new(&self.cron, timezone, gap, fold, first, last))
            }
        }
    }

    /// The last tick due in (after, until] of those that are wanted. Searched backwards in growing steps.
    #[must_use]
    pub fn latest_where(
        &self,
        after: DateTime<Utc>,
        until: DateTime<Utc>,
        wanted: impl Fn(&Tick) -> bool,
    ) -> Option<Tick> {
        let mut found = None;
        self.backwards(after, until, |ticks| {
            found = ticks.iter().rfind(|tick| wanted(tick)).copied();
            found.is_none()
        });
        found
    }

    /// Hands on the ticks due in (after, until] in spans, the last one first, for as long as `look` wants more.
    fn backwards(&self, after: DateTime<Utc>, until: DateTime<Utc>, mut look: impl FnMut(&[Tick]) -> bool) {
        let mut end = until;
        let mut step = TimeDelta::minutes(1);
        while end > after {
            let start = end.checked_sub_signed(step).map_or(after, |start| start.max(after));
            if !look(&self.by_due(start, end).collect::<Vec<_>>()) {
                break;
            }
            end = start;
            step = step * 4;
        }
    }

    /// Entries available before this instant belong to a run due then. Never after the due time. A cutoff in business
    /// days counts those of the job's calendar (Monday to Friday where it has none) in its zone; a local time that does not exist is moved forward, of two the first counts.
    #[must_use]
    pub fn cutoff_at(&self, due_at: DateTime<Utc>) -> DateTime<Utc> {
        match self.timing.cutoff {
            CutoffRule::Before(span) => TimeDelta::from_std(span)
                .ok()
                .and_then(|span| due_at.checked_sub_signed(span))
                .unwrap_or(DateTime::<Utc>::MIN_UTC),
            CutoffRule::BusinessDays { days, at } => {
                let back =
                    |calendar: &Calendar| calendar.business_days_before(self.value_date(due_at), days.min(CUTOFF_DAYS));
                let day = self.calendar().map_or_else(|| back(&weekends_only()), back);
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

/// Ticks by due time.
enum ByDue<'a> {
    /// Each is due when it is named.
    AsNamed(&'a Schedule, Walk<'a>),
    /// Those on days off are due on another day.
    Rolled(Rolled<'a>),
}

impl Iterator for ByDue<'_> {
    type Item = Tick;

    fn next(&mut self) -> Option<Tick> {
        match self {
            Self::AsNamed(schedule, walk) => {
                let placed = walk.next()?;
                let nominal = wall::instant(placed.second)?;
                let is_off = |calendar: &Calendar| {
                    wall::local_day(schedule.timing.timezone, nominal).map(|day| calendar.is_off(day))
                };
                let skipped = schedule.calendar().and_then(is_off) == Some(true);
                let day_off = skipped.then_some(DayOff::Skipped);
                Some(Tick { nominal, due_at: nominal, note: placed.note, day_off })
            }
            Self::Rolled(rolled) => rolled.next(),
        }
    }
}

#[cfg(test)]
impl Schedule {
    /// The same on business days of a calendar of weekends only.
    pub(super) fn rolled(mut self) -> Self {
        self.business_days = Some((weekends_only(), Roll::ModifiedFollowing));
        self
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
pub(super) mod tests;

//! Business days: which days are off, and where a tick goes that falls on one.
//!
//! Built-in calendars are rules, so they hold for every year; what a government moves or adds by proclamation is a list
//! (`built_in`). A day is off where any part of the calendar says so: its weekend, its holidays, what it extends.
//!
//! Bounds: at most [`MOST_DAYS_OFF`] days off in a row, so a roll moves a tick by less than [`REACH_DAYS`] days either way.
//!
//! Deliberately absent: half days and opening hours. A day is a business day or it is not.

mod built_in;

use std::collections::BTreeSet;

use chrono::{Datelike, Days, NaiveDate, Weekday};

pub use built_in::days_off_of;

use crate::domain::calendar::{BuiltIn, CalendarDefinition, Roll};
use crate::domain::job::fingerprint;

/// The most days off in a row.
pub const MOST_DAYS_OFF: u32 = 30;
/// Further than this no tick is moved, days.
pub const REACH_DAYS: u64 = 31;
/// The first and the last year that the fingerprint of a calendar speaks for.
const FINGERPRINT_YEARS: (i32, i32) = (2000, 2099);

/// The weekend of a calendar that names none.
pub const USUAL_WEEKEND: [Weekday; 2] = [Weekday::Sat, Weekday::Sun];

/// Why days off cannot be a calendar.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CalendarError {
    /// No day is left.
    #[error("every day of the week is off, expected at least one that is not")]
    NoBusinessDay,
    /// A tick would be moved further than is looked for it.
    #[error("more than {MOST_DAYS_OFF} days off in a row from {from} on, expected at most {MOST_DAYS_OFF}")]
    TooManyInARow {
        /// The first of them.
        from: NaiveDate,
    },
}

/// Puts a calendar together, and checks it. `weekend` and `holidays` hold what it extends, too.
///
/// # Errors
/// [`CalendarError`].
pub fn define(
    name: &str,
    built_in: BTreeSet<BuiltIn>,
    weekend: &[Weekday],
    holidays: BTreeSet<NaiveDate>,
) -> Result<CalendarDefinition, CalendarError> {
    let mut weekend = weekend.to_vec();
    weekend.sort_by_key(Weekday::num_days_from_monday);
    weekend.dedup();
    if weekend.len() == 7 {
        return Err(CalendarError::NoBusinessDay);
    }
    let mut definition =
        CalendarDefinition { name: name.to_owned(), built_in, weekend, holidays, fingerprint: String::new() };
    let calendar = Calendar::new(&definition);
    for holiday in &definition.holidays {
        let from = calendar.row_begins(*holiday);
        let mut days = (0..=u64::from(MOST_DAYS_OFF)).filter_map(|n| from.checked_add_days(Days::new(n)));
        if days.all(|day| calendar.is_off(day)) {
            return Err(CalendarError::TooManyInARow { from });
        }
    }
    definition.fingerprint = calendar.fingerprint();
    Ok(definition)
}

/// The calendar of a job that names none, for cutoffs in business days.
#[must_use]
pub fn weekends_only() -> Calendar {
    Calendar { built_in: Vec::new(), weekend: mask(&USUAL_WEEKEND), holidays: BTreeSet::new(), name: String::new() }
}

fn mask(days: &[Weekday]) -> u8 {
    days.iter().fold(0, |mask, day| mask | 1 << day.num_days_from_monday())
}

/// A calendar, ready.
#[derive(Debug, Clone)]
pub struct Calendar {
    name: String,
    built_in: Vec<BuiltIn>,
    /// A bit for each day of the week from Monday on.
    weekend: u8,
    holidays: BTreeSet<NaiveDate>,
}

impl Calendar {
    /// Makes it ready.
    #[must_use]
    pub fn new(definition: &CalendarDefinition) -> Self {
        Self {
            name: definition.name.clone(),
            built_in: definition.built_in.iter().copied().collect(),
            weekend: mask(&definition.weekend),
            holidays: definition.holidays.clone(),
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether a day is off.
    #[must_use]
    pub fn is_off(&self, day: NaiveDate) -> bool {
        self.weekend >> day.weekday().num_days_from_monday() & 1 == 1
            || self.holidays.contains(&day)
            || self.built_in.iter().any(|built_in| built_in::is_off(*built_in, day))
    }

    /// The first of the days off in a row that a day off is one of, no further back than matters.
    fn row_begins(&self, day: NaiveDate) -> NaiveDate {
        let earlier = (1..=u64::from(MOST_DAYS_OFF)).map_while(|n| day.checked_sub_days(Days::new(n)));
        earlier.take_while(|day| self.is_off(*day)).last().unwrap_or(day)
    }

    /// The first business day at or after a day, within [`REACH_DAYS`].
    fn at_or_after(&self, day: NaiveDate) -> Option<NaiveDate> {
        (0..=REACH_DAYS).filter_map(|n| day.checked_add_days(Days::new(n))).find(|day| !self.is_off(*day))
    }

    /// The last business day at or before a day, within [`REACH_DAYS`].
    fn at_or_before(&self, day: NaiveDate) -> Option<NaiveDate> {
        (0..=REACH_DAYS).filter_map(|n| day.checked_sub_days(Days::new(n))).find(|day| !self.is_off(*day))
    }

    /// The day on which what falls on a day is due; the day itself where it is a business day, or ticks on days off are
    /// skipped, or there is no business day in reach.
    #[must_use]
    pub fn rolled(&self, day: NaiveDate, roll: Roll) -> NaiveDate {
        let forward = || self.at_or_after(day);
        let moved = match roll {
            Roll::Skip => None,
            Roll::Following => forward(),
            Roll::Preceding => self.at_or_before(day),
            Roll::ModifiedFollowing => {
                forward().filter(|to| to.month() == day.month()).or_else(|| self.at_or_before(day))
            }
        };
        moved.unwrap_or(day)
    }

    /// The first and the last of the days around `day` whose ticks are due on the same day as its own: one after the other,
    /// and that due day among them.
    #[must_use]
    pub fn due_together(&self, day: NaiveDate, roll: Roll) -> (NaiveDate, NaiveDate, NaiveDate) {
        let due = self.rolled(day, roll);
        let (mut first, mut last) = (due.min(day), due.max(day));
        let together = |day: NaiveDate| self.is_off(day) && self.rolled(day, roll) == due;
        for _ in 0..REACH_DAYS {
            match first.pred_opt().filter(|before| together(*before)) {
                Some(before) => first = before,
                None => break,
            }
        }
        for _ in 0..REACH_DAYS {
            match last.succ_opt().filter(|after| together(*after)) {
                Some(after) => last = after,
                None => break,
            }
        }
        (first, last, due)
    }

    /// That many business days before a day; none is the day itself, business day or not.
    #[must_use]
    pub fn business_days_before(&self, day: NaiveDate, days: u32) -> NaiveDate {
        let mut day = day;
        for _ in 0..days {
            let Some(before) = day.pred_opt().and_then(|day| self.at_or_before(day)) else { break };
            day = before;
        }
        day
    }

    /// SHA-256 over the weekend, the holidays, and the days off that this release computes for a hundred years.
    fn fingerprint(&self) -> String {
        let (first, last) = FINGERPRINT_YEARS;
        let computed: BTreeSet<NaiveDate> =
            self.built_in.iter().flat_map(|of| (first..=last).flat_map(|year| days_off_of(*of, year))).collect();
        fingerprint(&(self.weekend, &self.holidays, computed))
    }
}

#[cfg(test)]
#[path = "calendar_tests.rs"]
pub(super) mod tests;

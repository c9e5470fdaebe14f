//! Ticks of a job with a calendar, by due time: what falls on a day off is due on the business day that it is rolled to, at the
//! same local time.
//!
//! Due times are walked along day by day: a business day and the days off that are rolled to it are one group, and no tick of
//! a later group is due before its first day begins. So a tick far from its nominal time is found without walking over the
//! weeks between, and a search over years looks only at days that the expression names.
//!
//! A rolled local time that does not exist is moved forward, of two the first counts, whatever the job's rules: those are for
//! the times that it names.

use std::collections::BTreeMap;

use chrono::{DateTime, Days, NaiveDate, NaiveTime, TimeDelta, Utc};

use super::calendar::{Calendar, REACH_DAYS};
use super::cron::Cron;
use super::plan::{DayOff, Tick};
use super::wall::{self, Walk};
use crate::domain::calendar::Roll;
use crate::domain::job::Timing;

/// Local times are looked for that much beyond a day's edges: around them a clock may be set back.
const EDGE: TimeDelta = TimeDelta::hours(3);
/// A local time that a gap leaves out is moved forward by so many days at most.
const GAP_DAYS: Days = Days::new(2);

/// Ticks in the order of due and then nominal time.
#[derive(Debug)]
pub(super) struct Rolled<'a> {
    cron: &'a Cron,
    timing: &'a Timing,
    calendar: &'a Calendar,
    roll: Roll,
    after: DateTime<Utc>,
    until: DateTime<Utc>,
    /// The first local day that was not looked at yet; none once all were.
    day: Option<NaiveDate>,
    /// The last local day that a group may begin with.
    last_day: NaiveDate,
    pending: BTreeMap<(DateTime<Utc>, DateTime<Utc>), Tick>,
}

impl<'a> Rolled<'a> {
    /// The ticks due in (after, until].
    pub(super) fn new(
        cron: &'a Cron,
        timing: &'a Timing,
        (calendar, roll): (&'a Calendar, Roll),
        after: DateTime<Utc>,
        until: DateTime<Utc>,
    ) -> Self {
        let local = |at| wall::local_day(timing.timezone, at);
        let begin = local(after).and_then(|day| day.pred_opt());
        Self {
            cron,
            timing,
            calendar,
            roll,
            after,
            until,
            day: begin.map(|day| calendar.due_together(day, roll).0),
            last_day: local(until).and_then(|day| day.succ_opt()).unwrap_or(NaiveDate::MAX),
            pending: BTreeMap::new(),
        }
    }

    /// No tick of a group that begins with this day is due before.
    fn earliest(&self, day: NaiveDate) -> Option<DateTime<Utc>> {
        wall::place(self.timing.timezone, day.and_time(NaiveTime::MIN)).map(|begin| begin - EDGE)
    }

    /// Looks at the next group that the expression names a day of, from `day` on. `None`: there is none.
    fn look(&mut self, day: NaiveDate) -> Option<()> {
        self.day = None;
        // A time that a gap moved lies behind the day that was named.
        let from = day.checked_sub_days(GAP_DAYS).unwrap_or(day);
        // What is rolled backwards is named after the day that it is due on.
        let furthest = self.last_day.checked_add_days(Days::new(REACH_DAYS)).unwrap_or(NaiveDate::MAX);
        let named = self.cron.first_from(from.and_time(NaiveTime::MIN), furthest)?.date().max(day);
        let (first, last, due_day) = self.calendar.due_together(named, self.roll);
        if first > self.last_day {
            return None;
        }
        let (first, next) = (first.max(day), last.succ_opt()?);
        let mut begin = self.earliest(first)?;
        let mut end = self.earliest(next)? + EDGE + EDGE;
        // On its own day a tick is due when it is named.
        if first == due_day {
            begin = begin.max(self.after);
        }
        if last == due_day {
            end = end.min(self.until);
        }
        let Timing { timezone, gap, fold, .. } = *self.timing;
        for placed in Walk::new(self.cron, timezone, gap, fold, begin.timestamp(), end.timestamp()) {
            let nominal = wall::instant(placed.second)?;
            let local = wall::local(timezone, nominal)?;
            if local.date() < first || local.date() > last {
                continue;
            }
            let (due_at, day_off) = if local.date() == due_day {
                (nominal, None)
            } else {
                (wall::place(timezone, due_day.and_time(local.time()))?, Some(DayOff::Moved))
            };
            if due_at > self.after && due_at <= self.until {
                self.pending.insert((due_at, nominal), Tick { nominal, due_at, note: placed.note, day_off });
            }
        }
        self.day = (next <= self.last_day).then_some(next);
        Some(())
    }
}

impl Iterator for Rolled<'_> {
    type Item = Tick;

    fn next(&mut self) -> Option<Tick> {
        while let Some(day) = self.day {
            let ready = match (self.pending.first_key_value(), self.earliest(day)) {
                (Some(((due_at, _), _)), Some(earliest)) => *due_at < earliest,
                (Some(_), None) => true,
                (None, _) => false,
            };
            if ready || self.look(day).is_none() {
                break;
            }
        }
        self.pending.pop_first().map(|(_, tick)| tick)
    }
}

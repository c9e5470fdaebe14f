//! The store's time as this tenure knows it: an offset to the boot clock, learnt anew with every answer that carries it.
//!
//! It only says how long to wait. Whether something is due is read in the transaction that acts on it.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use crate::domain::Moment;

/// One reading: the store's time at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Reading {
    at: Moment,
    /// It was surely read by then.
    by: Moment,
    store: DateTime<Utc>,
}

/// The last reading.
#[derive(Debug, Default)]
pub(super) struct StoreClock(Mutex<Option<Reading>>);

impl StoreClock {
    /// Takes in the store's time, read somewhere between sending and answer: taken as the middle.
    pub(super) fn learn(&self, sent: Moment, answered: Moment, store: DateTime<Utc>) {
        let at = sent + answered.since(sent) / 2;
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Reading { at, by: answered, store });
    }

    /// The store's time at a moment; `None` before the first reading.
    pub(super) fn at(&self, moment: Moment) -> Option<DateTime<Utc>> {
        let reading = (*self.0.lock().unwrap_or_else(PoisonError::into_inner))?;
        let passed = TimeDelta::from_std(moment.since(reading.at)).ok()?;
        reading.store.checked_add_signed(passed)
    }

    /// The time that the store's clock has surely reached at a moment, unless it was stepped back: however long the last reading
    /// was under way, behind a gate or a lock for example, it was read before it was answered.
    pub(super) fn at_least(&self, moment: Moment) -> Option<DateTime<Utc>> {
        let reading = (*self.0.lock().unwrap_or_else(PoisonError::into_inner))?;
        let passed = TimeDelta::from_std(moment.since(reading.by)).ok()?;
        reading.store.checked_add_signed(passed)
    }

    /// How long it is from a moment until the store's clock shows `due`; zero where it has passed or nothing is known.
    pub(super) fn until(&self, due: DateTime<Utc>, moment: Moment) -> Duration {
        self.at(moment).and_then(|now| (due - now).to_std().ok()).unwrap_or(Duration::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stores_time_goes_on_with_the_boot_clock() {
        let at = |ms| Moment::after_boot(Duration::from_millis(ms));
        let noon = DateTime::from_timestamp(1_800_000_000, 0).expect("in range");
        let clock = StoreClock::default();
        assert_eq!(clock.at(at(5)), None);
        assert_eq!(clock.until(noon, at(5)), Duration::ZERO);
        clock.learn(at(1000), at(1010), noon);
        assert_eq!(clock.at(at(3005)), Some(noon + TimeDelta::seconds(2)));
        assert_eq!(clock.until(noon + TimeDelta::seconds(10), at(3005)), Duration::from_secs(8));
        assert_eq!(clock.until(noon, at(3005)), Duration::ZERO);
        clock.learn(at(4000), at(4000), noon - TimeDelta::hours(1));
        assert_eq!(clock.at(at(4000)), Some(noon - TimeDelta::hours(1)), "stepped back with the store's own clock");
    }

    #[test]
    fn what_the_stores_clock_has_reached_is_not_overrated_where_an_answer_took_its_time() {
        let at = |seconds| Moment::after_boot(Duration::from_secs(seconds));
        let noon = DateTime::from_timestamp(1_800_000_000, 0).expect("in range");
        let clock = StoreClock::default();
        assert_eq!(clock.at_least(at(5)), None);
        // It waited for 20 s and was read at their end.
        clock.learn(at(100), at(120), noon);
        assert_eq!(clock.at_least(at(121)), Some(noon + TimeDelta::seconds(1)));
        assert_eq!(clock.at_least(at(110)), Some(noon), "not before it was read");
    }
}

//! The jobs of a tenure as they were last read: each timing is read once, and its next tick is looked for once per mark.
//!
//! Invariant: nothing here decides. A row that differs in its fingerprint or its mark is looked at anew.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use chrono::{DateTime, Utc};

use crate::schedule::{Schedule, ScheduleError};
use crate::store::JobRow;

#[derive(Debug)]
struct One {
    fingerprint: String,
    schedule: Arc<Schedule>,
    /// The mark that `next` is after.
    evaluated_until: DateTime<Utc>,
    next: Option<DateTime<Utc>>,
}

impl One {
    fn read(row: &JobRow) -> Result<Self, ScheduleError> {
        let schedule = Schedule::new(&row.definition.timing)?;
        let next = schedule.next_after(row.evaluated_until).map(|tick| tick.due_at);
        let fingerprint = row.fingerprint.clone();
        Ok(Self { fingerprint, schedule: Arc::new(schedule), evaluated_until: row.evaluated_until, next })
    }
}

/// Schedules by the id of their job.
#[derive(Debug, Default)]
pub(super) struct Known(HashMap<i64, One>);

impl Known {
    /// The schedule of a job row.
    ///
    /// # Errors
    /// [`ScheduleError`]: its timing cannot be read.
    pub(super) fn schedule(&mut self, row: &JobRow) -> Result<Arc<Schedule>, ScheduleError> {
        self.one(row).map(|one| Arc::clone(&one.schedule))
    }

    /// When the first tick after the row's mark is due.
    ///
    /// # Errors
    /// [`ScheduleError`]: its timing cannot be read.
    pub(super) fn next_due(&mut self, row: &JobRow) -> Result<Option<DateTime<Utc>>, ScheduleError> {
        let one = self.one(row)?;
        if one.evaluated_until != row.evaluated_until {
            one.next = one.schedule.next_after(row.evaluated_until).map(|tick| tick.due_at);
            one.evaluated_until = row.evaluated_until;
        }
        Ok(one.next)
    }

    fn one(&mut self, row: &JobRow) -> Result<&mut One, ScheduleError> {
        match self.0.entry(row.id) {
            Entry::Occupied(mut there) => {
                if there.get().fingerprint != row.fingerprint {
                    there.insert(One::read(row)?);
                }
                Ok(there.into_mut())
            }
            Entry::Vacant(none) => Ok(none.insert(One::read(row)?)),
        }
    }

    /// Forgets jobs that are not among these any more.
    pub(super) fn keep(&mut self, rows: &[JobRow]) {
        if self.0.len() > rows.len() {
            let ids: HashSet<i64> = rows.iter().map(|row| row.id).collect();
            self.0.retain(|id, _| ids.contains(id));
        }
    }
}

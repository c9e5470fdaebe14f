//! What an edit of a job does to its coming ticks: which are new, which are gone, which are due at another time. For people.
//!
//! A tick is the same where its nominal time is. Of the others, one that is gone and one that is new on the same local day,
//! each alone there, are shown as one that moves; that is how whoever edits a time of day thinks of it.
//!
//! Deliberately absent: what is owed at the edit, which [`misfire`](super::misfire) settles.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, Utc};

use super::plan::{CALL_TICKS, Schedule, Tick};

/// What an edit does to ticks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TickChanges {
    /// Only in the new definition.
    pub added: Vec<Tick>,
    /// Only in the old one.
    pub removed: Vec<Tick>,
    /// In both, or one for one on a day: the old one and the new one.
    pub moved: Vec<(Tick, Tick)>,
    /// Whether either has more ticks than are compared ([`CALL_TICKS`]).
    pub cut_short: bool,
}

impl TickChanges {
    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.moved.is_empty()
    }
}

/// The ticks due in (after, until] by their nominal time; whether there are more than are looked at.
fn ticks(
    schedule: Option<&Schedule>,
    after: DateTime<Utc>,
    until: DateTime<Utc>,
) -> (BTreeMap<DateTime<Utc>, Tick>, bool) {
    let due = schedule.into_iter().flat_map(|schedule| schedule.ticks_after(after));
    let found: BTreeMap<_, _> = due.take_while(|tick| tick.due_at <= until).map(|tick| (tick.nominal, tick)).collect();
    let cut_short = found.len() >= CALL_TICKS;
    (found, cut_short)
}

/// Compares the ticks due in (after, until] of two definitions; none stands for a job that is not there.
#[must_use]
pub fn compare(
    old: Option<&Schedule>,
    new: Option<&Schedule>,
    after: DateTime<Utc>,
    until: DateTime<Utc>,
) -> TickChanges {
    let ((mut before, old_cut), (mut coming, new_cut)) = (ticks(old, after, until), ticks(new, after, until));
    let mut changes = TickChanges { cut_short: old_cut || new_cut, ..TickChanges::default() };
    let both: Vec<DateTime<Utc>> = before.keys().filter(|nominal| coming.contains_key(nominal)).copied().collect();
    for nominal in both {
        let (Some(was), Some(is)) = (before.remove(&nominal), coming.remove(&nominal)) else { continue };
        if seen(old, &was) != seen(new, &is) {
            changes.moved.push((was, is));
        }
    }
    let (gone, fresh) = (by_day(old, before.values()), by_day(new, coming.values()));
    for (day, gone) in &gone {
        if let ([was], Some([is])) = (gone.as_slice(), fresh.get(day).map(Vec::as_slice)) {
            before.remove(&was.nominal);
            coming.remove(&is.nominal);
            changes.moved.push((*was, *is));
        }
    }
    changes.moved.sort_by_key(|(was, is)| (was.due_at.min(is.due_at), is.nominal));
    changes.added = in_order(coming);
    changes.removed = in_order(before);
    changes
}

/// What a person would see of a tick.
fn seen(schedule: Option<&Schedule>, tick: &Tick) -> impl PartialEq + use<> {
    let of = schedule.map(|schedule| (schedule.cutoff_at(tick.due_at), schedule.value_date(tick.due_at)));
    (tick.due_at, tick.day_off, of)
}

fn by_day<'a>(schedule: Option<&Schedule>, ticks: impl Iterator<Item = &'a Tick>) -> BTreeMap<NaiveDate, Vec<Tick>> {
    let mut days: BTreeMap<NaiveDate, Vec<Tick>> = BTreeMap::new();
    for tick in ticks {
        if let Some(schedule) = schedule {
            days.entry(schedule.value_date(tick.nominal)).or_default().push(*tick);
        }
    }
    days
}

fn in_order(ticks: BTreeMap<DateTime<Utc>, Tick>) -> Vec<Tick> {
    let mut ticks: Vec<Tick> = ticks.into_values().collect();
    ticks.sort_by_key(|tick| (tick.due_at, tick.nominal));
    ticks
}

#[cfg(test)]
mod tests {
    use super::super::test_timing::{at, schedule, timing};
    use super::*;

    fn shown(ticks: &[Tick]) -> Vec<String> {
        ticks.iter().map(|tick| tick.nominal.format("%d %H:%M").to_string()).collect()
    }

    fn changes(old: Option<&Schedule>, new: Option<&Schedule>) -> TickChanges {
        // A Friday, to the Tuesday after it.
        compare(old, new, at("2027-01-01T00:00:00Z"), at("2027-01-05T23:00:00Z"))
    }

    #[test]
    fn a_time_of_day_that_is_edited_moves_each_tick() {
        let changes = changes(Some(&schedule("0 17 * * *", "UTC")), Some(&schedule("30 18 * * MON-FRI", "UTC")));
        assert_eq!(shown(&changes.removed), ["02 17:00", "03 17:00"]);
        assert!(changes.added.is_empty());
        let moved: Vec<_> = changes.moved.iter().map(|(was, is)| shown(&[*was, *is]).join(" to ")).collect();
        assert_eq!(moved, ["01 17:00 to 01 18:30", "04 17:00 to 04 18:30", "05 17:00 to 05 18:30"]);
    }

    #[test]
    fn the_same_ticks_move_with_their_calendar_or_their_cutoff() {
        let plain = schedule("0 9 * * SAT", "UTC");
        let rolled = changes(Some(&plain), Some(&plain.clone().rolled()));
        assert_eq!(rolled.moved.len(), 1);
        assert_eq!(
            (rolled.moved[0].0.due_at, rolled.moved[0].1.due_at),
            (at("2027-01-02T09:00:00Z"), at("2027-01-04T09:00:00Z"))
        );
        let mut earlier = timing("0 9 * * SAT", "UTC");
        earlier.cutoff = crate::domain::job::CutoffRule::Before(std::time::Duration::from_mins(5));
        assert_eq!(changes(Some(&plain), Some(&Schedule::new(&earlier).expect("valid"))).moved.len(), 1);
        assert!(changes(Some(&plain), Some(&plain)).is_empty());
    }

    #[test]
    fn a_job_that_comes_or_goes_brings_or_takes_its_ticks() {
        let job = schedule("0 */12 * * *", "UTC");
        assert_eq!((changes(None, Some(&job)).added.len(), changes(Some(&job), None).removed.len()), (9, 9));
        // More than one a day are not told apart: they go and come.
        let other = changes(Some(&job), Some(&schedule("30 */12 * * *", "UTC")));
        assert_eq!((other.removed.len(), other.added.len(), other.moved.len()), (9, 10, 0), "{other:?}");
    }
}

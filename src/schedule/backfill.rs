//! Which ticks a backfill is about. Asked by the leader that executes it and by the dry run, so that both say the same.

use chrono::{DateTime, TimeDelta, Utc};

use super::plan::{CALL_TICKS, DayOff, Schedule, Tick};

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
    let mut seen = 0;
    let due = schedule.ticks_after(after).inspect(|_| seen += 1).take_while(|tick| tick.due_at <= to);
    let ticks: Vec<Tick> = due.filter(|tick| tick.day_off != Some(DayOff::Skipped)).take(BACKFILL_TICKS + 1).collect();
    if seen >= CALL_TICKS {
        return Err(format!(
            "{CALL_TICKS} ticks or more fall due from {from} to {to}, with those on days off: ask for parts of it"
        ));
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::calendar::{BusinessDays, Roll};
    use crate::domain::job::Timing;
    use crate::schedule::calendar::tests::weekends;
    use crate::schedule::test_timing::{at, timing};

    /// The twelfth of June 2027 is a Saturday.
    fn span(job: &Schedule, from: &str, to: &str) -> Result<usize, String> {
        backfilled(job, at("2027-07-01T00:00:00Z"), at(from), at(to)).map(|ticks| ticks.len())
    }

    #[test]
    fn days_off_are_never_taken_for_all_that_falls_due() {
        let days = BusinessDays { calendar: weekends(), roll: Roll::Skip };
        let each_second = Timing { business_days: Some(days), ..timing("* * * * * *", "UTC") };
        let job = Schedule::new(&each_second).expect("valid");
        let cut = span(&job, "2027-06-12T00:00:00Z", "2027-06-14T00:01:00Z").expect_err("it is not known");
        assert!(cut.contains("100000 ticks or more") && cut.contains("ask for parts"), "{cut}");
        assert_eq!(span(&job, "2027-06-13T00:00:00Z", "2027-06-14T00:00:59Z"), Ok(60));
        let none = span(&job, "2027-06-12T00:00:00Z", "2027-06-12T23:59:59Z").expect_err("a Saturday");
        assert!(none.contains("no tick"), "{none}");
    }
}

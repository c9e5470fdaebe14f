use std::collections::BTreeSet;
use std::time::Duration;

use chrono::{Datelike as _, LocalResult, NaiveTime, SecondsFormat, TimeZone};
use chrono_tz::Tz;
use proptest::prelude::*;

use super::super::test_timing::{at, schedule, timing};
use super::*;
use crate::domain::job::{FoldRule, GapRule};

fn instants(schedule: &Schedule, from: &str, to: &str) -> Vec<String> {
    let page = schedule.ticks_between(at(from), at(to));
    assert!(!page.more && page.complete_until == at(to));
    page.ticks.iter().map(|tick| tick.nominal.to_rfc3339_opts(SecondsFormat::Secs, true)).collect()
}

fn with_rules(cron: &str, zone: &str, gap: GapRule, fold: FoldRule) -> Schedule {
    let mut timing = timing(cron, zone);
    (timing.gap, timing.fold) = (gap, fold);
    Schedule::new(&timing).expect(cron)
}

/// All pages.
pub(in crate::schedule) fn all_between(schedule: &Schedule, from: DateTime<Utc>, to: DateTime<Utc>) -> Vec<Tick> {
    let (mut all, mut mark) = (Vec::new(), from);
    loop {
        let page = schedule.ticks_between(mark, to);
        all.extend(page.ticks);
        mark = page.complete_until;
        if !page.more {
            assert_eq!(mark, to);
            return all;
        }
    }
}

/// Every tick by brute force, with chrono-tz's own resolution of each local time; notes left out.
fn by_force(schedule: &Schedule, from: DateTime<Utc>, to: DateTime<Utc>) -> Vec<DateTime<Utc>> {
    let Timing { timezone, gap, fold, .. } = *schedule.timing();
    let mut found = BTreeSet::new();
    let mut wall = from.naive_utc() - TimeDelta::days(3);
    let end = (to.naive_utc() + TimeDelta::days(3)).date();
    while let Some(named) = schedule.cron().first_from(wall, end) {
        match (timezone.from_local_datetime(&named), gap, fold) {
            (LocalResult::Single(one), _, _) => drop(found.insert(one.to_utc())),
            (LocalResult::Ambiguous(first, last), _, rule) => {
                if rule != FoldRule::Last {
                    found.insert(first.to_utc());
                }
                if rule != FoldRule::First {
                    found.insert(last.to_utc());
                }
            }
            (LocalResult::None, GapRule::Skip, _) => {}
            (LocalResult::None, GapRule::Shift, _) => {
                // The last local time before the gap says which offset was in force.
                let before = (1..=200)
                    .find_map(|quarters| {
                        timezone.from_local_datetime(&(named - TimeDelta::minutes(15 * quarters))).latest()
                    })
                    .expect("gaps are shorter than 50 hours");
                found.insert(before.to_utc() + (named - before.naive_local()));
            }
        }
        wall = named + TimeDelta::seconds(1);
    }
    found.into_iter().filter(|tick| *tick > from && *tick <= to).collect()
}

#[test]
fn a_time_that_exists_twice_runs_once_at_the_first_of_two() {
    let daily = schedule("30 1 * * *", "America/New_York");
    let page = daily.ticks_between(at("2027-11-07T00:00:00Z"), at("2027-11-08T00:00:00Z"));
    assert_eq!(page.ticks.len(), 1);
    assert_eq!(page.ticks[0].nominal, at("2027-11-07T05:30:00Z"));
    assert_eq!(page.ticks[0].note, Some(TickNote::FirstOfTwo));
    let both = with_rules("30 1 * * *", "America/New_York", GapRule::Shift, FoldRule::Both);
    assert_eq!(
        instants(&both, "2027-11-07T00:00:00Z", "2027-11-08T00:00:00Z"),
        ["2027-11-07T05:30:00Z", "2027-11-07T06:30:00Z"]
    );
    let last = with_rules("30 1 * * *", "America/New_York", GapRule::Shift, FoldRule::Last);
    let page = last.ticks_between(at("2027-11-07T00:00:00Z"), at("2027-11-08T00:00:00Z"));
    assert_eq!(page.ticks.len(), 1);
    assert_eq!((page.ticks[0].nominal, page.ticks[0].note), (at("2027-11-07T06:30:00Z"), Some(TickNote::SecondOfTwo)));
}

#[test]
fn a_time_that_does_not_exist_follows_the_rule_and_says_so() {
    let daily = schedule("30 2 * * *", "America/New_York");
    let page = daily.ticks_between(at("2027-03-14T05:00:00Z"), at("2027-03-15T05:00:00Z"));
    assert_eq!(page.ticks.len(), 1);
    assert_eq!(page.ticks[0].nominal, at("2027-03-14T07:30:00Z"), "03:30 daylight time");
    let from = NaiveDate::from_ymd_opt(2027, 3, 14).and_then(|day| day.and_hms_opt(2, 30, 0)).expect("a time");
    assert_eq!(page.ticks[0].note, Some(TickNote::Shifted { from }));
    let skip = with_rules("30 2 * * *", "America/New_York", GapRule::Skip, FoldRule::First);
    assert_eq!(instants(&skip, "2027-03-14T05:00:00Z", "2027-03-15T05:00:00Z"), [""; 0]);
    let year = (at("2027-01-01T00:00:00Z"), at("2028-01-01T00:00:00Z"));
    assert_eq!(skip.left_out_between(year.0, year.1), [(at("2027-03-14T07:30:00Z"), from)]);
    assert!(daily.left_out_between(year.0, year.1).is_empty());
}

#[test]
fn a_quarter_hourly_job_has_no_gap_and_no_repeat_in_utc() {
    for zone in [
        "America/New_York",
        "Australia/Lord_Howe",
        "Africa/Casablanca",
        "America/Santiago",
        "Asia/Kolkata",
        "Pacific/Apia",
    ] {
        let job = schedule("*/15 * * * *", zone);
        let mut before = at("2027-01-01T00:00:00Z");
        for tick in job.ticks_after(before).take(96 * 366) {
            assert_eq!(tick.nominal - before, TimeDelta::minutes(15), "{zone} after {before}");
            before = tick.nominal;
        }
    }
}

#[test]
fn a_shifted_tick_that_meets_another_is_one_with_it() {
    let job = schedule("0,30 2,3 * * *", "America/New_York");
    let page = job.ticks_between(at("2027-03-14T05:00:00Z"), at("2027-03-15T05:00:00Z"));
    let found: Vec<_> = page.ticks.iter().map(|tick| (tick.nominal, tick.note.is_some())).collect();
    assert_eq!(found, [(at("2027-03-14T07:00:00Z"), true), (at("2027-03-14T07:30:00Z"), true)]);
    assert!(page.ticks.iter().all(|tick| matches!(tick.note, Some(TickNote::Joined { .. }))));
    // Out of order on the wall clock, in order on the time line: 02:45 moves to 03:45, past 03:15.
    let job = with_rules("15,45 2,3 * * *", "America/New_York", GapRule::Shift, FoldRule::First);
    assert_eq!(
        instants(&job, "2027-03-14T05:00:00Z", "2027-03-15T05:00:00Z"),
        ["2027-03-14T07:15:00Z", "2027-03-14T07:45:00Z"]
    );
    let job = with_rules("45 2 14 3 *", "America/New_York", GapRule::Shift, FoldRule::First);
    assert_eq!(instants(&job, "2027-03-14T05:00:00Z", "2027-03-15T05:00:00Z"), ["2027-03-14T07:45:00Z"]);
}

#[test]
fn a_fold_is_seen_from_wherever_a_walk_begins() {
    // The clock of New York is set back at 2027-11-07T06:00:00Z.
    let job = with_rules("*/10 * * * *", "America/New_York", GapRule::Skip, FoldRule::Last);
    let expected = by_force(&job, at("2027-11-04T00:00:00Z"), at("2027-11-08T00:00:00Z"));
    for minutes in 0..4 * 1440 / 5 {
        let from = at("2027-11-04T00:00:00Z") + TimeDelta::minutes(5 * minutes);
        let found: Vec<_> =
            job.ticks_between(from, at("2027-11-08T00:00:00Z")).ticks.iter().map(|t| t.nominal).collect();
        let rest: Vec<_> = expected.iter().filter(|tick| **tick > from).copied().collect();
        assert_eq!(found, rest, "from {from}");
    }
}

#[test]
fn half_an_hour_is_shifted_by_half_an_hour() {
    let job = schedule("15 2 * * *", "Australia/Lord_Howe");
    // 2027-10-03 02:00 (+10:30) becomes 02:30 (+11).
    assert_eq!(instants(&job, "2027-10-02T12:00:00Z", "2027-10-03T12:00:00Z"), ["2027-10-02T15:45:00Z"]);
    // 2027-04-04 02:00 (+11) becomes 01:30 (+10:30): 01:45 exists twice.
    let job = schedule("45 1 * * *", "Australia/Lord_Howe");
    assert_eq!(instants(&job, "2027-04-03T12:00:00Z", "2027-04-04T12:00:00Z"), ["2027-04-03T14:45:00Z"]);
}

#[test]
fn a_day_left_out_is_run_with_the_next_one() {
    // Apia went from 2011-12-29 24:00 (-10) to 2011-12-31 00:00 (+14).
    let job = schedule("0 7 * * *", "Pacific/Apia");
    let page = job.ticks_between(at("2011-12-28T18:00:00Z"), at("2012-01-01T00:00:00Z"));
    let found: Vec<_> = page.ticks.iter().map(|tick| tick.nominal).collect();
    assert_eq!(found, [at("2011-12-29T17:00:00Z"), at("2011-12-30T17:00:00Z"), at("2011-12-31T17:00:00Z")]);
    assert!(matches!(page.ticks[1].note, Some(TickNote::Joined { .. })));
    let job = schedule("0 7 30 12 *", "Pacific/Apia");
    let page = job.ticks_between(at("2011-12-28T18:00:00Z"), at("2012-01-01T00:00:00Z"));
    assert_eq!(page.ticks.len(), 1);
    assert!(matches!(page.ticks[0].note, Some(TickNote::Shifted { .. })));
    let skip = with_rules("0 7 30 12 *", "Pacific/Apia", GapRule::Skip, FoldRule::First);
    assert_eq!(skip.next_after(at("2011-01-01T00:00:00Z")).map(|tick| tick.nominal), Some(at("2012-12-29T17:00:00Z")));
}

#[test]
fn rare_ticks_are_found_and_the_search_is_bounded() {
    let job = schedule("0 0 29 2 *", "Europe/Berlin");
    let found: Vec<_> =
        job.ticks_after(at("2096-01-01T00:00:00Z")).take(2).map(|t| job.value_date(t.due_at).year()).collect();
    assert_eq!(found, [2096, 2104]);
    assert_eq!(
        job.latest_between(at("2090-01-01T00:00:00Z"), at("2103-12-31T00:00:00Z")).map(|t| t.nominal.year()),
        Some(2096)
    );
    // A date that the zone left out for good.
    let fifth = schedule("0 0 * 2 MON#5", "UTC");
    assert_eq!(fifth.next_after(at("2072-03-01T00:00:00Z")).map(|t| t.nominal.year()), Some(2112));
    assert_eq!(fifth.ticks_after(DateTime::<Utc>::MAX_UTC).next(), None);
}

#[test]
fn a_page_is_bounded_and_says_where_to_go_on() {
    let job = schedule("* * * * * *", "Europe/London");
    let (from, to) = (at("2027-03-28T00:30:00Z"), at("2027-03-28T01:30:00Z"));
    let first = job.ticks_between(from, to);
    assert_eq!((first.ticks.len(), first.more), (PAGE_TICKS, true));
    assert_eq!(first.complete_until, from + TimeDelta::seconds(1000));
    let all = all_between(&job, from, to);
    assert_eq!(all.len(), 3600);
    assert!(all.windows(2).all(|pair| pair[0].nominal < pair[1].nominal));
    let exact = job.ticks_between(from, from + TimeDelta::seconds(1000));
    assert_eq!((exact.ticks.len(), exact.more), (PAGE_TICKS, false));
}

#[test]
fn the_bounds_of_a_span_are_from_excluded_and_to_included() {
    let job = schedule("* * * * *", "UTC");
    assert_eq!(instants(&job, "2027-01-01T00:00:00Z", "2027-01-01T00:01:00Z"), ["2027-01-01T00:01:00Z"]);
    assert_eq!(instants(&job, "2027-01-01T00:00:00.001Z", "2027-01-01T00:00:59.999Z"), [""; 0]);
    assert_eq!(instants(&job, "2026-12-31T23:59:59.999Z", "2027-01-01T00:00:00Z"), ["2027-01-01T00:00:00Z"]);
    assert_eq!(job.next_after(at("2027-01-01T00:00:00.5Z")).map(|t| t.nominal), Some(at("2027-01-01T00:01:00Z")));
}

#[test]
fn rolled_ticks_come_by_due_time_and_then_by_nominal_time() {
    let job = schedule("0 9 * * *", "UTC").rolled();
    // 2027-01-02 is a Saturday.
    let page = job.ticks_between(at("2027-01-01T12:00:00Z"), at("2027-01-05T12:00:00Z"));
    let found: Vec<_> =
        page.ticks.iter().map(|t| (t.due_at.format("%d").to_string(), t.nominal.format("%d").to_string())).collect();
    let expected = [("04", "02"), ("04", "03"), ("04", "04"), ("05", "05")];
    assert_eq!(found, expected.map(|(due, nominal)| (due.to_owned(), nominal.to_owned())));
    // Due after the mark, nominal long before it.
    assert_eq!(job.next_after(at("2027-01-03T12:00:00Z")).map(|t| t.nominal), Some(at("2027-01-02T09:00:00Z")));
    assert_eq!(job.due_at(at("2027-01-04T09:00:00Z")).first().map(|t| t.nominal), Some(at("2027-01-02T09:00:00Z")));
    // Sunday 08:00 is due on Monday 08:00, before Saturday's 09:00.
    let job = schedule("0 8,9 * * 0,6", "UTC").rolled();
    let page = job.ticks_between(at("2027-01-01T12:00:00Z"), at("2027-01-05T12:00:00Z"));
    let found: Vec<_> = page.ticks.iter().map(|t| t.nominal.format("%d %H").to_string()).collect();
    assert_eq!(found, ["02 08", "03 08", "02 09", "03 09"]);
    // The last of January is a Sunday: back to Friday, before what Friday itself has later in the day.
    let job = schedule("0 9,17 * * *", "UTC").rolled();
    let ticks = all_between(&job, at("2027-01-28T20:00:00Z"), at("2027-02-01T08:00:00Z"));
    let found: Vec<_> = ticks.iter().map(|tick| tick.nominal.format("%d %H").to_string()).collect();
    assert_eq!(found, ["29 09", "30 09", "31 09", "29 17", "30 17", "31 17"]);
}

#[test]
fn cutoffs_lie_before_the_due_time_on_the_jobs_wall_clock() {
    let mut timing = timing("30 17 * * *", "Europe/London");
    timing.cutoff = CutoffRule::Before(Duration::from_mins(30));
    let due = at("2027-07-05T16:30:00Z");
    assert_eq!(Schedule::new(&timing).expect("valid").cutoff_at(due), at("2027-07-05T16:00:00Z"));
    let clock = |hour| NaiveTime::from_hms_opt(hour, 0, 0).expect("a time");
    for (days, hour, due, cutoff) in [
        // Monday: the business day before is Friday.
        (1, 17, "2027-07-05T16:30:00Z", "2027-07-02T16:00:00Z"),
        (2, 17, "2027-07-05T16:30:00Z", "2027-07-01T16:00:00Z"),
        (0, 12, "2027-07-05T16:30:00Z", "2027-07-05T11:00:00Z"),
        // Sunday, and a cutoff on the other side of a change of the clock.
        (1, 17, "2027-03-28T16:30:00Z", "2027-03-26T17:00:00Z"),
        // A local time that does not exist.
        (0, 1, "2027-03-28T16:30:00Z", "2027-03-28T01:00:00Z"),
        // Never after the due time.
        (0, 23, "2027-07-05T16:30:00Z", "2027-07-05T16:30:00Z"),
    ] {
        timing.cutoff = CutoffRule::BusinessDays { days, at: clock(hour) };
        assert_eq!(Schedule::new(&timing).expect("valid").cutoff_at(at(due)), at(cutoff), "{days} {hour} {due}");
    }
    timing.cutoff = CutoffRule::BusinessDays { days: u32::MAX, at: clock(0) };
    assert!(Schedule::new(&timing).expect("valid").cutoff_at(due) > at("2026-01-01T00:00:00Z"));
    timing.cutoff = CutoffRule::Before(Duration::MAX);
    assert!(Schedule::new(&timing).expect("valid").cutoff_at(due) < due);
}

#[test]
fn the_value_date_is_the_due_day_of_the_jobs_zone() {
    let due = at("2027-01-01T20:00:00Z");
    assert_eq!(schedule("0 5 * * *", "Asia/Tokyo").value_date(due).to_string(), "2027-01-02");
    assert_eq!(schedule("0 5 * * *", "America/New_York").value_date(due).to_string(), "2027-01-01");
}

#[test]
fn an_expression_is_refused_with_its_own_words() {
    let mut timing = timing("0 0 1 1 *", "UTC");
    timing.cron = "0 0 30 2 *".to_owned();
    assert!(Schedule::new(&timing).expect_err("never").to_string().contains("never occurs"));
}

/// Zones with something to them, and years in which it happened.
pub(in crate::schedule) fn zones() -> impl Strategy<Value = (&'static str, i32)> {
    prop::sample::select(vec![
        ("America/New_York", 2027),
        ("Europe/London", 2027),
        ("Europe/Berlin", 2027),
        ("Australia/Lord_Howe", 2027),
        ("America/Santiago", 2027),
        ("Africa/Casablanca", 2026),
        ("Africa/Casablanca", 2018),
        ("Pacific/Apia", 2011),
        ("Pacific/Kwajalein", 1993),
        ("Asia/Pyongyang", 2018),
        ("Asia/Kolkata", 2027),
        ("America/St_Johns", 2010),
        ("Antarctica/Troll", 2027),
        ("UTC", 2027),
    ])
}

/// Expressions of every kind, none finer than a minute.
pub(in crate::schedule) fn expressions() -> impl Strategy<Value = String> {
    let minute = prop::sample::select(vec!["*/15", "0", "30", "1,59", "0-40/20", "*/7", "45"]);
    let hour = prop::sample::select(vec!["*", "0", "1", "2", "1,2", "2,3", "0-4", "*/2", "23", "9-17", "3", "0,1,2,3"]);
    let day = prop::sample::select(vec!["*", "*", "L", "LW", "1", "31", "15W", "30,31", "*/2"]);
    let weekday = prop::sample::select(vec!["*", "*", "1-5", "7", "SUN#1", "5L", "SAT"]);
    (minute, hour, day, weekday).prop_map(|(minute, hour, day, weekday)| format!("{minute} {hour} {day} * {weekday}"))
}

fn rules() -> impl Strategy<Value = (GapRule, FoldRule)> {
    (
        prop::sample::select(vec![GapRule::Shift, GapRule::Skip]),
        prop::sample::select(vec![FoldRule::First, FoldRule::Last, FoldRule::Both]),
    )
}

/// The changes of a zone in a year, and a quiet day.
fn days_of_interest(zone: &str, year: i32) -> Vec<DateTime<Utc>> {
    let zone: Tz = zone.parse().expect(zone);
    let start = NaiveDate::from_yo_opt(year, 1).expect("a year").and_time(NaiveTime::MIN).and_utc();
    let offset = |day: i64| {
        (start + TimeDelta::days(day)).with_timezone(&zone).naive_local() - (start + TimeDelta::days(day)).naive_utc()
    };
    let mut days: Vec<_> =
        (0..366).filter(|day| offset(*day) != offset(day + 1)).map(|day| start + TimeDelta::days(day)).collect();
    days.push(start + TimeDelta::days(200));
    days
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn ticks_are_those_of_brute_force_in_order_and_none_twice(
        (zone, year) in zones(), cron in expressions(), (gap, fold) in rules(), skew in 0i64..172_800
    ) {
        let job = with_rules(&cron, zone, gap, fold);
        for day in days_of_interest(zone, year) {
            let (from, to) = (day - TimeDelta::seconds(skew), day + TimeDelta::days(3));
            let found: Vec<_> = all_between(&job, from, to).iter().map(|tick| tick.nominal).collect();
            prop_assert!(found.windows(2).all(|pair| pair[0] < pair[1]));
            prop_assert_eq!(&found, &by_force(&job, from, to), "{} {} from {}", cron, zone, from);
            prop_assert_eq!(job.latest_between(from, to).map(|tick| tick.nominal), found.last().copied());
            // Where a walk begins makes no difference.
            for pair in found.windows(2) {
                prop_assert_eq!(job.next_after(pair[0]).map(|tick| tick.nominal), Some(pair[1]));
                prop_assert_eq!(job.next_after(pair[1] - TimeDelta::seconds(1)).map(|tick| tick.nominal), Some(pair[1]));
            }
        }
    }
}

use chrono::TimeDelta;
use proptest::prelude::*;

use super::super::plan::Schedule;
use super::super::plan::tests::{all_between, expressions, zones};
use super::super::test_timing::{at, timing};
use super::*;
use crate::domain::calendar::BusinessDays;
use crate::domain::job::CutoffRule;

fn day(text: &str) -> NaiveDate {
    text.parse().expect(text)
}

fn built_in(of: BuiltIn) -> CalendarDefinition {
    define(of.as_str(), BTreeSet::from([of]), &USUAL_WEEKEND, BTreeSet::new()).expect("a calendar")
}

/// Days off are Saturdays and Sundays, and no others.
pub(in crate::schedule) fn weekends() -> CalendarDefinition {
    define("weekends", BTreeSet::new(), &USUAL_WEEKEND, BTreeSet::new()).expect("a calendar")
}

/// The days off of a year from Monday to Friday, in order.
fn weekdays_off(of: BuiltIn, year: i32) -> Vec<String> {
    let days: BTreeSet<NaiveDate> = days_off_of(of, year).into_iter().collect();
    let on_weekdays = days.into_iter().filter(|day| !USUAL_WEEKEND.contains(&day.weekday()));
    on_weekdays.map(|day| day.format("%m-%d").to_string()).collect()
}

#[test]
fn target2_closes_on_the_days_that_the_ecb_published() {
    for (year, days) in [
        (2022, &["04-15", "04-18", "12-26"][..]),
        (2023, &["04-07", "04-10", "05-01", "12-25", "12-26"]),
        (2024, &["01-01", "03-29", "04-01", "05-01", "12-25", "12-26"]),
        (2025, &["01-01", "04-18", "04-21", "05-01", "12-25", "12-26"]),
        (2026, &["01-01", "04-03", "04-06", "05-01", "12-25"]),
        (2027, &["01-01", "03-26", "03-29"]),
    ] {
        assert_eq!(weekdays_off(BuiltIn::Target2, year), days, "{year}");
    }
}

#[test]
fn the_federal_reserve_closes_on_the_days_that_it_published() {
    for (year, days) in [
        (2021, &["01-01", "01-18", "02-15", "05-31", "07-05", "09-06", "10-11", "11-11", "11-25"][..]),
        (2022, &["01-17", "02-21", "05-30", "06-20", "07-04", "09-05", "10-10", "11-11", "11-24", "12-26"]),
        (2023, &["01-02", "01-16", "02-20", "05-29", "06-19", "07-04", "09-04", "10-09", "11-23", "12-25"]),
        (2024, &["01-01", "01-15", "02-19", "05-27", "06-19", "07-04", "09-02", "10-14", "11-11", "11-28", "12-25"]),
        (2025, &["01-01", "01-20", "02-17", "05-26", "06-19", "07-04", "09-01", "10-13", "11-11", "11-27", "12-25"]),
        (2026, &["01-01", "01-19", "02-16", "05-25", "06-19", "09-07", "10-12", "11-11", "11-26", "12-25"]),
        (2027, &["01-01", "01-18", "02-15", "05-31", "07-05", "09-06", "10-11", "11-11", "11-25"]),
        (2028, &["01-17", "02-21", "05-29", "06-19", "07-04", "09-04", "10-09", "11-23", "12-25"]),
    ] {
        assert_eq!(weekdays_off(BuiltIn::UsFederalReserve, year), days, "{year}");
    }
    // 4 July 2026 is a Saturday, and the Friday before it is open; 2027-07-04 is a Sunday.
    let calendar = Calendar::new(&built_in(BuiltIn::UsFederalReserve));
    assert!(!calendar.is_off(day("2026-07-03")) && calendar.is_off(day("2027-07-05")));
}

#[test]
fn england_and_wales_have_the_bank_holidays_that_were_published_with_their_substitutes() {
    for (year, days) in [
        (2002, &["01-01", "03-29", "04-01", "05-06", "06-03", "06-04", "08-26", "12-25", "12-26"][..]),
        (2011, &["01-03", "04-22", "04-25", "04-29", "05-02", "05-30", "08-29", "12-26", "12-27"]),
        (2012, &["01-02", "04-06", "04-09", "05-07", "06-04", "06-05", "08-27", "12-25", "12-26"]),
        (2016, &["01-01", "03-25", "03-28", "05-02", "05-30", "08-29", "12-26", "12-27"]),
        (2020, &["01-01", "04-10", "04-13", "05-08", "05-25", "08-31", "12-25", "12-28"]),
        (2021, &["01-01", "04-02", "04-05", "05-03", "05-31", "08-30", "12-27", "12-28"]),
        (2022, &["01-03", "04-15", "04-18", "05-02", "06-02", "06-03", "08-29", "09-19", "12-26", "12-27"]),
        (2023, &["01-02", "04-07", "04-10", "05-01", "05-08", "05-29", "08-28", "12-25", "12-26"]),
        (2024, &["01-01", "03-29", "04-01", "05-06", "05-27", "08-26", "12-25", "12-26"]),
        (2025, &["01-01", "04-18", "04-21", "05-05", "05-26", "08-25", "12-25", "12-26"]),
        (2026, &["01-01", "04-03", "04-06", "05-04", "05-25", "08-31", "12-25", "12-28"]),
        (2027, &["01-01", "03-26", "03-29", "05-03", "05-31", "08-30", "12-27", "12-28"]),
    ] {
        assert_eq!(weekdays_off(BuiltIn::EnglandAndWales, year), days, "{year}");
    }
}

#[test]
fn a_day_is_rolled_forward_backward_or_within_its_month() {
    let calendar = Calendar::new(&built_in(BuiltIn::Target2));
    for (from, following, modified, preceding) in [
        // Easter of 2027, from Good Friday to Monday.
        ("2027-03-26", "2027-03-30", "2027-03-30", "2027-03-25"),
        ("2027-03-28", "2027-03-30", "2027-03-30", "2027-03-25"),
        // A Sunday that ends a month, and 1 May, a Saturday.
        ("2027-01-31", "2027-02-01", "2027-01-29", "2027-01-29"),
        ("2027-05-01", "2027-05-03", "2027-05-03", "2027-04-30"),
        // The turn of the year: 1 January 2027 is a Friday.
        ("2027-01-01", "2027-01-04", "2027-01-04", "2026-12-31"),
        ("2027-01-04", "2027-01-04", "2027-01-04", "2027-01-04"),
    ] {
        let rolled = |roll| calendar.rolled(day(from), roll).to_string();
        assert_eq!(rolled(Roll::Following), following, "{from}");
        assert_eq!(rolled(Roll::ModifiedFollowing), modified, "{from}");
        assert_eq!(rolled(Roll::Preceding), preceding, "{from}");
        assert_eq!(rolled(Roll::Skip), from);
    }
    assert_eq!(calendar.business_days_before(day("2027-03-30"), 1), day("2027-03-25"));
    assert_eq!(calendar.business_days_before(day("2027-03-28"), 1), day("2027-03-25"), "from a day off");
    assert_eq!(calendar.business_days_before(day("2027-03-30"), 3), day("2027-03-23"));
}

#[test]
fn a_calendar_keeps_a_business_day_within_reach_and_says_where_not() {
    let week = [Weekday::Mon, Weekday::Tue, Weekday::Wed, Weekday::Thu, Weekday::Fri, Weekday::Sat, Weekday::Sun];
    assert_eq!(define("x", BTreeSet::new(), &week, BTreeSet::new()), Err(CalendarError::NoBusinessDay));
    let row = |days: i64| (0..days).map(|n| day("2027-06-01") + TimeDelta::days(n)).collect::<BTreeSet<_>>();
    assert_eq!(
        define("x", BTreeSet::new(), &[], row(31)),
        Err(CalendarError::TooManyInARow { from: day("2027-06-01") })
    );
    let longest = define("x", BTreeSet::new(), &[], row(30)).expect("a calendar");
    let calendar = Calendar::new(&longest);
    assert_eq!(calendar.rolled(day("2027-06-01"), Roll::Following), day("2027-07-01"));
    assert_eq!(calendar.rolled(day("2027-06-30"), Roll::Preceding), day("2027-05-31"));
}

#[test]
fn a_fingerprint_is_that_of_the_days_off() {
    let plain = built_in(BuiltIn::Target2).fingerprint;
    assert_eq!(plain.len(), 64);
    let own = define("house", BTreeSet::from([BuiltIn::Target2]), &USUAL_WEEKEND, BTreeSet::new()).expect("a calendar");
    assert_eq!(own.fingerprint, plain, "the same days under another name");
    let more = BTreeSet::from([day("2027-06-01")]);
    let more = define("house", BTreeSet::from([BuiltIn::Target2]), &USUAL_WEEKEND, more).expect("a calendar");
    assert_ne!(more.fingerprint, plain);
    assert_ne!(built_in(BuiltIn::EnglandAndWales).fingerprint, plain);
}

fn with(cron: &str, zone: &str, calendar: CalendarDefinition, roll: Roll) -> Schedule {
    let mut timing = timing(cron, zone);
    timing.business_days = Some(BusinessDays { calendar, roll });
    Schedule::new(&timing).expect("valid")
}

#[test]
fn a_daily_job_is_due_on_business_days_at_its_own_time_of_day() {
    let job = with("30 17 * * MON-FRI", "Europe/Berlin", built_in(BuiltIn::Target2), Roll::Following);
    let found: Vec<_> = job
        .ticks_after(at("2027-03-25T12:00:00Z"))
        .take(5)
        .map(|tick| (tick.nominal.format("%m-%d %H").to_string(), tick.due_at.format("%m-%d %H").to_string()))
        .collect();
    // Easter lies across the change of the clock: the nominal hour in UTC is the winter's, the due one the summer's.
    let expected = [
        ("03-25 16", "03-25 16"),
        ("03-26 16", "03-30 15"),
        ("03-29 15", "03-30 15"),
        ("03-30 15", "03-30 15"),
        ("03-31 15", "03-31 15"),
    ];
    assert_eq!(found, expected.map(|(nominal, due)| (nominal.to_owned(), due.to_owned())));
}

#[test]
fn a_cutoff_in_business_days_counts_those_of_the_calendar() {
    let mut timing = timing("30 17 * * *", "Europe/Berlin");
    timing.cutoff =
        CutoffRule::BusinessDays { days: 1, at: chrono::NaiveTime::from_hms_opt(17, 0, 0).expect("a time") };
    let due = at("2027-03-30T15:30:00Z");
    assert_eq!(Schedule::new(&timing).expect("valid").cutoff_at(due), at("2027-03-29T15:00:00Z"));
    timing.business_days = Some(BusinessDays { calendar: built_in(BuiltIn::Target2), roll: Roll::Following });
    assert_eq!(Schedule::new(&timing).expect("valid").cutoff_at(due), at("2027-03-25T16:00:00Z"));
}

#[test]
fn days_off_that_are_skipped_keep_their_time_and_say_so() {
    use super::super::plan::DayOff;
    let job = with("0 9 * * *", "UTC", built_in(BuiltIn::Target2), Roll::Skip);
    let found: Vec<_> = job
        .ticks_after(at("2027-03-25T00:00:00Z"))
        .take(6)
        .map(|tick| (tick.due_at == tick.nominal, tick.day_off))
        .collect();
    let off = (true, Some(DayOff::Skipped));
    assert_eq!(found, [(true, None), off, off, off, off, (true, None)]);
}

#[test]
fn a_rare_tick_is_found_far_ahead_and_one_that_never_comes_is_not_searched_for_long() {
    let job = with("0 9 25 12 *", "Europe/London", built_in(BuiltIn::EnglandAndWales), Roll::Preceding);
    assert_eq!(job.next_after(at("2027-01-01T00:00:00Z")).map(|tick| tick.due_at), Some(at("2027-12-24T09:00:00Z")));
    // Every second of all Sundays goes to the Mondays: looked at day by day, and only as far as is asked.
    let job = with("* * * * * SUN", "UTC", built_in(BuiltIn::Target2), Roll::Following);
    assert_eq!(job.next_after(at("2027-01-03T12:00:00Z")).map(|tick| tick.due_at), Some(at("2027-01-04T00:00:00Z")));
    assert_eq!(job.ticks_after(chrono::DateTime::<chrono::Utc>::MAX_UTC).next(), None);
}

/// A calendar with runs of days off of any length up to ten.
pub(in crate::schedule) fn calendars() -> impl Strategy<Value = CalendarDefinition> {
    let weekend = prop::sample::select(vec![
        vec![],
        vec![Weekday::Sat, Weekday::Sun],
        vec![Weekday::Fri, Weekday::Sat],
        vec![Weekday::Mon, Weekday::Tue, Weekday::Wed, Weekday::Thu, Weekday::Sun],
    ]);
    let base = prop::option::of(prop::sample::select(BuiltIn::ALL.to_vec()));
    let runs = prop::collection::vec((0i64..400, 1i64..10), 0..6);
    (weekend, base, runs, 2010i32..2030).prop_filter_map("too long a row", |(weekend, base, runs, year)| {
        let start = NaiveDate::from_yo_opt(year, 1)?;
        let off =
            runs.into_iter().flat_map(|(from, days)| (from..from + days).map(move |n| start + TimeDelta::days(n)));
        define("random", base.into_iter().collect(), &weekend, off.collect()).ok()
    })
}

pub(in crate::schedule) fn rolls() -> impl Strategy<Value = Roll> {
    prop::sample::select(vec![Roll::Following, Roll::ModifiedFollowing, Roll::Preceding, Roll::Skip])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn rolled_ticks_are_those_of_the_expression_each_rolled_for_itself(
        (zone, year) in zones(), cron in expressions(), calendar in calendars(), roll in rolls(),
        start in 0i64..31_536_000, length in 1i64..2_000_000
    ) {
        let plain = Schedule::new(&timing(&cron, zone)).expect("valid");
        let rolled = with(&cron, zone, calendar.clone(), roll);
        let from = NaiveDate::from_yo_opt(year, 1).expect("a year").and_time(chrono::NaiveTime::MIN).and_utc() + TimeDelta::seconds(start);
        let to = from + TimeDelta::seconds(length);
        // By brute force: every nominal tick of two months more, each moved by the calendar.
        let (calendar, reach) = (Calendar::new(&calendar), TimeDelta::days(35));
        let zone: chrono_tz::Tz = zone.parse().expect("a zone");
        let mut expected: Vec<_> = all_between(&plain, from - reach, to + reach).into_iter().map(|tick| {
            let local = tick.nominal.with_timezone(&zone).naive_local();
            let to = calendar.rolled(local.date(), roll);
            let due = if to == local.date() { tick.nominal } else {
                super::super::wall::place(zone, to.and_time(local.time())).expect("in range")
            };
            (due, tick.nominal)
        }).filter(|(due, _)| *due > from && *due <= to).collect();
        expected.sort_unstable();
        let found: Vec<_> = all_between(&rolled, from, to).into_iter().map(|tick| (tick.due_at, tick.nominal)).collect();
        prop_assert_eq!(&found, &expected, "{} {} {:?} from {} to {}", cron, zone, roll, from, to);
        prop_assert_eq!(rolled.next_after(from).map(|tick| tick.due_at).filter(|due| *due <= to), expected.first().map(|tick| tick.0));
        let latest = rolled.latest_between(from, to).map(|tick| (tick.due_at, tick.nominal));
        prop_assert_eq!(latest, expected.last().copied());
    }
}

//! The built-in calendars, each with its source. Weekends are Saturday and Sunday in all of them and are not repeated here.
//!
//! - `target2`: the ECB's long-term calendar of closing days (its decision of 14 December 2000, in force from 2002 on; T2 took
//!   it over in March 2023): New Year's Day, Good Friday, Easter Monday, 1 May, 25 and 26 December. None is moved off a weekend.
//! - `us-federal-reserve`: the Federal Reserve Banks' holiday schedule: the federal holidays of 5 U.S.C. 6103(a), Juneteenth
//!   from 2022 on. One on a Sunday is observed on the Monday; one on a Saturday is not observed on the Friday. Days of
//!   mourning by executive order close federal offices, and not the Reserve Banks' services.
//! - `england-and-wales`: the Banking and Financial Dealings Act 1971, Schedule 1, New Year's Day and the early May holiday by
//!   proclamation. What falls on a weekend has a substitute on the next day that is not off by another one. The days that
//!   proclamations moved or added from 2000 on are in [`PROCLAIMED`] and [`MOVED`]; whatever is proclaimed later is right from
//!   the release that knows of it on, and until then `[[calendar]]` can add it.
//!
//! Rules hold for every year. Before 2000 they are today's rules, which were not yet those days'.

use chrono::{Datelike, Days, NaiveDate, Weekday};

use crate::domain::calendar::BuiltIn;

/// Bank holidays of England and Wales that were added for one year.
const PROCLAIMED: [(i32, u32, u32); 6] = [
    (2002, 6, 3),  // Golden Jubilee
    (2011, 4, 29), // the wedding of Prince William
    (2012, 6, 5),  // Diamond Jubilee
    (2022, 6, 3),  // Platinum Jubilee
    (2022, 9, 19), // the funeral of Queen Elizabeth II
    (2023, 5, 8),  // the coronation of King Charles III
];

/// Year, month, day of the month.
type Day = (i32, u32, u32);

/// Bank holidays of England and Wales that were moved for one year: from, and to.
const MOVED: [(Day, Day); 4] = [
    ((2002, 5, 27), (2002, 6, 4)), // spring, to the Golden Jubilee
    ((2012, 5, 28), (2012, 6, 4)), // spring, to the Diamond Jubilee
    ((2020, 5, 4), (2020, 5, 8)),  // early May, to 75 years of VE Day
    ((2022, 5, 30), (2022, 6, 2)), // spring, to the Platinum Jubilee
];

/// Whether a day is off, weekends apart.
pub(super) fn is_off(calendar: BuiltIn, day: NaiveDate) -> bool {
    // No built-in calendar has a day off that these leave out: most days are answered without computing Easter.
    let weekday = day.weekday();
    if day.month() == 2 && weekday != Weekday::Mon {
        return false;
    }
    days_off_of(calendar, day.year()).contains(&day)
}

/// The days off of a year, weekends apart: where a holiday that falls on a weekend is not moved it is in the list all the same.
/// In no order.
#[must_use]
pub fn days_off_of(calendar: BuiltIn, year: i32) -> Vec<NaiveDate> {
    match calendar {
        BuiltIn::Target2 => target2(year),
        BuiltIn::UsFederalReserve => us_federal_reserve(year),
        BuiltIn::EnglandAndWales => england_and_wales(year),
    }
}

fn target2(year: i32) -> Vec<NaiveDate> {
    let easter = easter_sunday(year);
    [
        date(year, 1, 1),
        easter.and_then(|easter| easter.checked_sub_days(Days::new(2))),
        easter.and_then(|easter| easter.succ_opt()),
        date(year, 5, 1),
        date(year, 12, 25),
        date(year, 12, 26),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn us_federal_reserve(year: i32) -> Vec<NaiveDate> {
    let juneteenth = if year >= 2022 { date(year, 6, 19) } else { None };
    let fixed = [date(year, 1, 1), juneteenth, date(year, 7, 4), date(year, 11, 11), date(year, 12, 25)];
    let observed = fixed.into_iter().flatten().filter_map(|day| match day.weekday() {
        Weekday::Sun => day.succ_opt(),
        Weekday::Mon | Weekday::Tue | Weekday::Wed | Weekday::Thu | Weekday::Fri | Weekday::Sat => Some(day),
    });
    let counted = [
        nth(year, 1, Weekday::Mon, 3),
        nth(year, 2, Weekday::Mon, 3),
        last(year, 5, Weekday::Mon),
        nth(year, 9, Weekday::Mon, 1),
        nth(year, 10, Weekday::Mon, 2),
        nth(year, 11, Weekday::Thu, 4),
    ];
    observed.chain(counted.into_iter().flatten()).collect()
}

fn england_and_wales(year: i32) -> Vec<NaiveDate> {
    let easter = easter_sunday(year);
    let mut days: Vec<NaiveDate> = [
        easter.and_then(|easter| easter.checked_sub_days(Days::new(2))),
        easter.and_then(|easter| easter.succ_opt()),
        nth(year, 5, Weekday::Mon, 1),
        last(year, 5, Weekday::Mon),
        last(year, 8, Weekday::Mon),
        date(year, 12, 25),
        date(year, 12, 26),
        date(year, 1, 1),
    ]
    .into_iter()
    .flatten()
    .collect();
    // Christmas Day before Boxing Day: on a Sunday and a Monday, the former's substitute is the Tuesday.
    for fixed in [date(year, 1, 1), date(year, 12, 25), date(year, 12, 26)].into_iter().flatten() {
        if is_weekend(fixed) {
            let next = fixed.iter_days().find(|day| !is_weekend(*day) && !days.contains(day));
            days.extend(next);
        }
    }
    let of = |(year, month, day): (i32, u32, u32)| date(year, month, day);
    for (from, to) in MOVED.into_iter().filter(|(from, _)| from.0 == year) {
        days.retain(|day| Some(*day) != of(from));
        days.extend(of(to));
    }
    days.extend(PROCLAIMED.into_iter().filter(|added| added.0 == year).filter_map(of));
    days
}

fn is_weekend(day: NaiveDate) -> bool {
    match day.weekday() {
        Weekday::Sat | Weekday::Sun => true,
        Weekday::Mon | Weekday::Tue | Weekday::Wed | Weekday::Thu | Weekday::Fri => false,
    }
}

const fn date(year: i32, month: u32, day: u32) -> Option<NaiveDate> {
    NaiveDate::from_ymd_opt(year, month, day)
}

/// The n-th such weekday of a month.
fn nth(year: i32, month: u32, weekday: Weekday, n: u8) -> Option<NaiveDate> {
    NaiveDate::from_weekday_of_month_opt(year, month, weekday, n)
}

/// The last such weekday of a month.
fn last(year: i32, month: u32, weekday: Weekday) -> Option<NaiveDate> {
    nth(year, month, weekday, 5).or_else(|| nth(year, month, weekday, 4))
}

/// Easter Sunday of the Gregorian calendar, from the golden number, the century's corrections and the day of the week of the
/// paschal full moon. Right for every year of the Gregorian calendar.
#[must_use]
pub(super) fn easter_sunday(year: i32) -> Option<NaiveDate> {
    let golden = year.rem_euclid(19);
    let century = year.div_euclid(100);
    let leaps_left_out = century - century.div_euclid(4);
    let moon_corrections = (8 * century + 13).div_euclid(25);
    // The moon's age at the turn of the year, and from it the days from 21 March to the full moon after it.
    let age = (19 * golden + leaps_left_out - moon_corrections + 15).rem_euclid(30);
    let full_moon = age - i32::from(age == 29 || (age == 28 && golden > 10));
    let weekday = (year + year.div_euclid(4) + full_moon + 2 - leaps_left_out).rem_euclid(7);
    let after_21_march = full_moon + 7 - weekday;
    date(year, 3, 21)?.checked_add_days(Days::new(u64::try_from(after_21_march).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn easter_is_the_sunday_that_it_was_and_will_be() {
        for day in [
            "1943-04-25",
            "1961-04-02",
            "1981-04-19",
            "2000-04-23",
            "2008-03-23",
            "2011-04-24",
            "2016-03-27",
            "2019-04-21",
            "2020-04-12",
            "2021-04-04",
            "2022-04-17",
            "2023-04-09",
            "2024-03-31",
            "2025-04-20",
            "2026-04-05",
            "2027-03-28",
            "2028-04-16",
            "2029-04-01",
            "2030-04-21",
            "2035-03-25",
            "2038-04-25",
            "2049-04-18",
            "2285-03-22",
        ] {
            let day: NaiveDate = day.parse().expect(day);
            assert_eq!(easter_sunday(day.year()), Some(day));
        }
    }

    #[test]
    fn easter_is_a_sunday_from_22_march_to_25_april_in_every_year() {
        for year in 1600..4000 {
            let day = easter_sunday(year).expect("in range");
            assert_eq!(day.weekday(), Weekday::Sun, "{day}");
            assert!(date(year, 3, 22) <= Some(day) && Some(day) <= date(year, 4, 25), "{day}");
        }
    }

    #[test]
    fn no_day_off_is_answered_away_by_the_short_cut() {
        for calendar in BuiltIn::ALL {
            for year in 1990..2100 {
                for day in days_off_of(calendar, year) {
                    assert!(is_off(calendar, day), "{}: {day}", calendar.as_str());
                }
            }
        }
    }
}

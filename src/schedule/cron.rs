//! Cron expressions on the naive wall clock: which local times they name, and nothing about zones.
//!
//! The grammar is croner's (ranges, steps, names, `L`, `W`, `#`, `?`), but each field is read here first. croner takes
//! month names in any field, empty list items and `L,LW` (where it forgets the `L`); a schedule that moves money should
//! not guess, and an error should name the field. After that croner decides which days match; times of day are lists.
//!
//! Invariants:
//! - A [`Cron`] has an occurrence: the search at parse covers 400 years, after which the Gregorian calendar repeats.
//! - 0, 7 and `SUN` are the same day.
//! - Searches go forward, month by month and day by day, up to a day that the caller names.
//!
//! Deliberately absent: years (a seventh field), nicknames (`@daily`), croner's `+` (which turns [`DAY_RULE`] around for
//! one expression): five fields, or six with seconds first, read one way.

use std::fmt;

use chrono::{Datelike, Days, Months, NaiveDate, NaiveDateTime, NaiveTime, Timelike};
use croner::parser::{CronParser, Seconds, Year};
use croner::{CronComponent, CronPattern, Weekday};

use super::field::{self, FIELDS};
use crate::domain::job::{FoldRule, GapRule};

/// How day-of-month and day-of-week go together: the rule of POSIX crontab. `check` prints it for the expressions that
/// it matters for ([`Cron::joins_days`]).
pub const DAY_RULE: &str = "day-of-month and day-of-week are both restricted (neither is exactly * or ?): \
                            a day that matches either of them counts";

/// The most bytes of an expression.
pub const CRON_BYTES: usize = 256;

/// Why an expression was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CronError {
    /// Too long to be one.
    #[error("a cron expression has at most {CRON_BYTES} bytes, found {found}")]
    TooLong {
        /// Its bytes.
        found: usize,
    },
    /// Not five or six fields.
    #[error("expected five fields, or six with seconds first, found {found} in {text:?}{hint}")]
    FieldCount {
        /// Fields found.
        found: usize,
        /// The expression.
        text: String,
        /// What may have been meant, or nothing.
        hint: &'static str,
    },
    /// Something in a field that is not allowed there.
    #[error("the {field} field holds {found:?}: {problem}; allowed are {allowed}")]
    Field {
        /// The field's name.
        field: &'static str,
        /// The list item.
        found: String,
        /// What is wrong with it.
        problem: &'static str,
        /// What the field may hold.
        allowed: &'static str,
    },
    /// croner reads it differently than we do.
    #[error("{text:?} is not understood: {problem}")]
    NotUnderstood {
        /// The expression.
        text: String,
        /// croner's own words.
        problem: String,
    },
    /// No day ever matches.
    #[error("{text:?} never occurs: no date matches its day and month fields")]
    Never {
        /// The expression.
        text: String,
    },
}

/// An expression that has been read, and that occurs.
#[derive(Debug, Clone)]
pub struct Cron {
    text: String,
    pattern: CronPattern,
    hours: Vec<u32>,
    minutes: Vec<u32>,
    seconds: Vec<u32>,
    repeats_hourly: bool,
}

impl Cron {
    /// Reads five fields, or six with seconds first. Names are read in either case.
    ///
    /// # Errors
    /// [`CronError`] says which field holds what, and what is allowed; an expression without any occurrence is refused.
    pub fn parse(text: &str) -> Result<Self, CronError> {
        if text.len() > CRON_BYTES {
            return Err(CronError::TooLong { found: text.len() });
        }
        let upper = text.trim().to_ascii_uppercase();
        let parts: Vec<&str> = upper.split_ascii_whitespace().collect();
        let fields = match parts.len() {
            5 => &FIELDS[1..],
            6 => &FIELDS[..],
            found => {
                let hint = if upper.starts_with('@') { "; nicknames are not read, write the fields" } else { "" };
                return Err(CronError::FieldCount { found, text: text.to_owned(), hint });
            }
        };
        for (field, part) in fields.iter().zip(&parts) {
            field.check(part)?;
        }
        let hour_field = parts[parts.len() - 4];
        let not_understood = |problem: &dyn fmt::Display| CronError::NotUnderstood {
            text: text.to_owned(),
            problem: problem.to_string(),
        };
        let mut read = CronParser::builder()
            .seconds(Seconds::Optional)
            .year(Year::Disallowed)
            .dom_and_dow(false)
            .build()
            .parse(&upper)
            .map_err(|error| not_understood(&error))?;
        // There is no year field, and croner's weighs 5,000 bytes.
        read.pattern.years = CronComponent::new(0, 0, 0, 0);
        let values = |component: &CronComponent| component.values().into_iter().map(u32::from).collect();
        let cron = Self {
            text: text.trim().to_owned(),
            hours: values(&read.pattern.hours),
            minutes: values(&read.pattern.minutes),
            seconds: values(&read.pattern.seconds),
            pattern: read.pattern,
            repeats_hourly: field::repeats_each(hour_field),
        };
        if cron.hours.is_empty() || cron.minutes.is_empty() || cron.seconds.is_empty() {
            return Err(not_understood(&"a time field names nothing"));
        }
        if cron.first_from(CYCLE_START.and_time(NaiveTime::MIN), CYCLE_END).is_none() {
            return Err(CronError::Never { text: cron.text });
        }
        Ok(cron)
    }

    /// The expression as it was written, trimmed.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether [`DAY_RULE`] makes a difference.
    #[must_use]
    pub fn joins_days(&self) -> bool {
        !self.pattern.is_dom_wildcard() && !self.pattern.is_dow_wildcard()
    }

    /// Whether it repeats by the hour or finer: its hour field holds `*` or a range, without a step. `*/15 9-17 * * *`
    /// does; `0 1,2 * * *`, `0 */2 * * *` and `*/15 3 * * *` have fixed hours.
    #[must_use]
    pub const fn repeats_hourly(&self) -> bool {
        self.repeats_hourly
    }

    /// The first local time at or after `from` that the expression names, on `last` at the latest. Whole seconds; a
    /// fraction in `from` is ignored. Every time of day is looked at as if it existed.
    #[must_use]
    pub fn first_from(&self, from: NaiveDateTime, last: NaiveDate) -> Option<NaiveDateTime> {
        let mut day = from.date();
        let mut earliest = (from.hour(), from.minute(), from.second());
        while day <= last {
            if !self.pattern.month_match(day.month()).unwrap_or(false) {
                day = day.with_day(1)?.checked_add_months(Months::new(1))?;
                earliest = (0, 0, 0);
                continue;
            }
            if self.names_day(day)
                && let Some((hour, minute, second)) = self.time_from(earliest)
            {
                return day.and_hms_opt(hour, minute, second);
            }
            day = day.checked_add_days(Days::new(1))?;
            earliest = (0, 0, 0);
        }
        None
    }

    /// Whether the day fields name a day of a month that the month field names.
    fn names_day(&self, day: NaiveDate) -> bool {
        let weekday = Weekday::from_days_from_sunday(day.weekday().num_days_from_sunday());
        self.pattern.day_match(day.year(), day.month(), day.day(), weekday).unwrap_or(false)
    }

    /// The first time of day at or after `earliest`.
    fn time_from(&self, earliest: (u32, u32, u32)) -> Option<(u32, u32, u32)> {
        let (hour, minute, second) = earliest;
        let at_least = |list: &[u32], value: u32| list.get(list.partition_point(|v| *v < value)).copied();
        let next_hour = at_least(&self.hours, hour)?;
        if next_hour > hour {
            return Some((next_hour, self.minutes[0], self.seconds[0]));
        }
        if let Some(next_minute) = at_least(&self.minutes, minute) {
            if next_minute > minute {
                return Some((hour, next_minute, self.seconds[0]));
            }
            if let Some(next_second) = at_least(&self.seconds, second) {
                return Some((hour, minute, next_second));
            }
            if let Some(next_minute) = at_least(&self.minutes, minute + 1) {
                return Some((hour, next_minute, self.seconds[0]));
            }
        }
        at_least(&self.hours, hour + 1).map(|next| (next, self.minutes[0], self.seconds[0]))
    }
}

impl fmt::Display for Cron {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The DST rules of a job that names none: one with fixed hours shifts out of a gap and runs at the first of two; one
/// that repeats by the hour or finer follows elapsed time, so nothing is made up in a gap and a fold is run through twice.
#[must_use]
pub const fn default_rules(cron: &Cron) -> (GapRule, FoldRule) {
    if cron.repeats_hourly() { (GapRule::Skip, FoldRule::Both) } else { (GapRule::Shift, FoldRule::First) }
}

/// Four hundred years: 146,097 days, a whole number of weeks, after which dates and weekdays repeat.
const CYCLE_START: NaiveDate = NaiveDate::from_ymd_opt(2000, 1, 1).expect("a date");
const CYCLE_END: NaiveDate = NaiveDate::from_ymd_opt(2399, 12, 31).expect("a date");

#[cfg(test)]
mod tests {
    use super::*;

    fn day(text: &str) -> NaiveDate {
        text.parse().expect(text)
    }

    fn days(cron: &str, from: &str, to: &str) -> Vec<String> {
        let cron = Cron::parse(cron).expect(cron);
        let mut at = day(from).and_time(NaiveTime::MIN);
        let mut found = Vec::new();
        while let Some(wall) = cron.first_from(at, day(to)) {
            found.push(wall.format("%m-%d").to_string());
            at = wall + chrono::TimeDelta::seconds(1);
        }
        found
    }

    #[test]
    fn the_31st_exists_in_seven_months_and_l_in_all() {
        let found = days("0 2 31 * *", "2027-01-01", "2027-12-31");
        assert_eq!(found, ["01-31", "03-31", "05-31", "07-31", "08-31", "10-31", "12-31"]);
        let found = days("0 2 L * *", "2027-01-01", "2027-12-31");
        assert_eq!(found.len(), 12);
        assert_eq!(found[1], "02-28");
        assert_eq!(days("0 2 L 2 *", "2028-01-01", "2028-12-31"), ["02-29"]);
    }

    #[test]
    fn nearest_weekdays_stay_in_their_month_and_lw_is_the_last_of_them() {
        // 2027: 1 May is a Saturday, 15 August a Sunday, 31 October a Sunday.
        assert_eq!(days("0 2 1W 5 *", "2027-01-01", "2027-12-31"), ["05-03"]);
        assert_eq!(days("0 2 15W 8 *", "2027-01-01", "2027-12-31"), ["08-16"]);
        assert_eq!(days("0 2 31W 10 *", "2027-01-01", "2027-12-31"), ["10-29"]);
        assert_eq!(days("0 2 LW 10 *", "2027-01-01", "2027-12-31"), ["10-29"]);
    }

    #[test]
    fn numbered_and_last_weekdays_are_found() {
        assert_eq!(days("0 2 * 1 MON#1", "2027-01-01", "2027-12-31"), ["01-04"]);
        assert_eq!(days("0 2 * 1 FRI#5", "2027-01-01", "2027-12-31"), ["01-29"]);
        assert_eq!(days("0 2 * 2 FRI#5", "2027-01-01", "2029-12-31"), [""; 0]);
        assert_eq!(days("0 2 * 2 5L", "2027-01-01", "2027-12-31"), ["02-26"]);
        assert_eq!(days("0 2 * 2 FRI#L", "2027-01-01", "2027-12-31"), ["02-26"]);
    }

    #[test]
    fn zero_seven_and_sun_are_the_same_day() {
        let sundays = days("0 7 * * SUN", "2027-01-01", "2027-01-31");
        assert_eq!(sundays, ["01-03", "01-10", "01-17", "01-24", "01-31"]);
        for same in ["0 7 * * 0", "0 7 * * 7", "0 7 * * sun", "0 7 ? * 7", "0 7 * * 7,0"] {
            assert_eq!(days(same, "2027-01-01", "2027-01-31"), sundays, "{same}");
        }
        assert_eq!(days("0 7 * * FRI-SUN", "2027-01-01", "2027-01-05"), ["01-01", "01-02", "01-03"]);
        assert_eq!(days("0 7 * * SUN-TUE", "2027-01-01", "2027-01-05"), ["01-03", "01-04", "01-05"]);
        assert_eq!(days("0 7 * * SUN#1", "2027-01-01", "2027-01-31"), ["01-03"]);
        assert_eq!(days("0 7 * * 7#1", "2027-01-01", "2027-01-31"), ["01-03"]);
        assert_eq!(days("0 7 * * 7L", "2027-01-01", "2027-01-31"), ["01-31"]);
    }

    #[test]
    fn weekdays_after_a_saturday_begin_on_monday() {
        assert_eq!(days("0 7 * * 1-5", "2027-01-02", "2027-01-05"), ["01-04", "01-05"]);
        assert_eq!(days("0 7 * * MON-FRI", "2027-01-02", "2027-01-05"), ["01-04", "01-05"]);
    }

    #[test]
    fn a_day_that_matches_either_day_field_counts_where_both_are_restricted() {
        let either = days("0 0 13 * FRI", "2027-01-01", "2027-01-31");
        assert_eq!(either, ["01-01", "01-08", "01-13", "01-15", "01-22", "01-29"]);
        assert!(Cron::parse("0 0 13 * FRI").expect("valid").joins_days());
        for alone in ["0 0 13 * *", "0 0 13 * ?", "0 0 ? * FRI", "0 0 * * FRI"] {
            assert!(!Cron::parse(alone).expect(alone).joins_days(), "{alone}");
        }
        // A step is a restriction, also where it begins with a star.
        assert!(Cron::parse("0 0 */2 * FRI").expect("valid").joins_days());
    }

    #[test]
    fn what_never_occurs_is_refused_when_it_is_read() {
        for never in ["0 0 30 2 *", "0 0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 0 31W 6 *", "* * * * * 1#5 7"] {
            let error = Cron::parse(never).expect_err(never);
            match error {
                CronError::Never { .. } => assert!(!never.ends_with(" 7")),
                CronError::FieldCount { found, .. } => assert_eq!(found, 7),
                CronError::TooLong { .. } | CronError::Field { .. } | CronError::NotUnderstood { .. } => {
                    panic!("{never}: {error}")
                }
            }
        }
        // Rare is not never: a fifth Monday in February, once in 28 years.
        assert_eq!(days("0 0 * 2 MON#5", "2027-01-01", "2060-12-31"), ["02-29"]);
    }

    #[test]
    fn six_fields_begin_with_seconds() {
        let cron = Cron::parse("5,35 58-59 23 31 12 *").expect("valid");
        let mut at = day("2027-01-01").and_time(NaiveTime::MIN);
        let mut found = Vec::new();
        while let Some(wall) = cron.first_from(at, day("2027-12-31")) {
            found.push(wall.format("%H:%M:%S").to_string());
            at = wall + chrono::TimeDelta::seconds(1);
        }
        assert_eq!(found, ["23:58:05", "23:58:35", "23:59:05", "23:59:35"]);
    }

    #[test]
    fn fixed_hours_and_repetition_have_rules_of_their_own() {
        let fixed = (GapRule::Shift, FoldRule::First);
        let elapsed = (GapRule::Skip, FoldRule::Both);
        for (cron, rules) in [
            ("30 17 * * MON-FRI", fixed),
            ("0 1,2 * * *", fixed),
            ("0 */2 * * *", fixed),
            ("*/15 3 * * *", fixed),
            ("* 3-3 * * *", fixed),
            ("* * * * *", elapsed),
            ("*/15 * * * *", elapsed),
            ("0 9-17 * * *", elapsed),
            ("0 */1 * * *", elapsed),
            ("0 1,9-17 * * *", elapsed),
            ("0 0 * * * *", elapsed),
        ] {
            assert_eq!(default_rules(&Cron::parse(cron).expect(cron)), rules, "{cron}");
        }
    }

    #[test]
    fn a_wrong_expression_is_named_with_its_field() {
        for (cron, says) in [
            ("", "found 0"),
            ("* * * *", "found 4"),
            ("@daily", "nicknames are not read"),
            ("0 0 0 1 1 * 2027", "found 7"),
            ("60 * * * *", "the minute field holds \"60\""),
            ("* 24 * * *", "the hour field holds \"24\""),
            ("60 * * * * *", "the second field holds \"60\""),
            ("0 0 0 * *", "the day-of-month field holds \"0\""),
            ("0 0 * 13 *", "the month field holds \"13\""),
            ("0 0 * * 8", "the day-of-week field holds \"8\""),
            ("JAN * * * *", "the minute field holds \"JAN\""),
            ("0 0 * MON *", "the month field holds \"MON\""),
            ("0 0 * * MONDAY", "the day-of-week field holds \"MONDAY\""),
            ("0 0 * * FRI-MON", "begins after it ends"),
            ("0 22-6 * * *", "begins after it ends"),
            ("0/15 * * * *", "a step needs * or a range"),
            ("*/0 * * * *", "the step is 0"),
            ("*/61 * * * *", "the step is larger"),
            ("1,,2 * * * *", "an item is empty"),
            ("0 0 * * L", "L needs a weekday before it"),
            ("0 0 L,LW * *", "L and LW"),
            ("0 0 W15 * *", "the day-of-month field holds \"W15\""),
            ("0 0 32W * *", "the day-of-month field holds \"32W\""),
            ("0 0 13 * +FRI", "the day-of-week field holds \"+FRI\""),
            ("0 0 * * 1#6", "the day-of-week field holds \"1#6\""),
            ("? * * * *", "the minute field holds \"?\""),
            ("0 0 *,? * *", "the day-of-month field holds \"?\""),
            ("\u{661} * * * *", "the minute field holds"),
        ] {
            let error = Cron::parse(cron).expect_err(cron).to_string();
            assert!(error.contains(says), "{cron}: {error}");
        }
        assert!(Cron::parse(&"0,".repeat(200)).is_err());
    }
}

//! The fields of a cron expression: what each may hold, one list item after the other, so that an error names field
//! and item. What is accepted here means the same to croner; what croner takes beyond it is refused.

use super::cron::CronError;

/// One field.
#[derive(Debug)]
pub(super) struct Field {
    name: &'static str,
    least: u32,
    most: u32,
    names: &'static [&'static str],
    first_name: u32,
    days: Days,
    allowed: &'static str,
}

/// Which of the day signs a field knows.
#[derive(Debug, Clone, Copy)]
enum Days {
    None,
    OfMonth,
    OfWeek,
}

const MONTHS: [&str; 12] = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

const fn time(name: &'static str, most: u32, allowed: &'static str) -> Field {
    Field { name, least: 0, most, names: &[], first_name: 0, days: Days::None, allowed }
}

/// The six fields, seconds first.
pub(super) const FIELDS: [Field; 6] = [
    time("second", 59, "0-59, *, lists, ranges and steps"),
    time("minute", 59, "0-59, *, lists, ranges and steps"),
    time("hour", 23, "0-23, *, lists, ranges and steps"),
    Field {
        name: "day-of-month",
        least: 1,
        most: 31,
        names: &[],
        first_name: 0,
        days: Days::OfMonth,
        allowed: "1-31, *, ?, lists, ranges and steps, L (the last day), LW (the last weekday), 15W (the weekday nearest to the 15th)",
    },
    Field {
        name: "month",
        least: 1,
        most: 12,
        names: &MONTHS,
        first_name: 1,
        days: Days::None,
        allowed: "1-12, JAN-DEC, *, lists, ranges and steps",
    },
    Field {
        name: "day-of-week",
        least: 0,
        most: 7,
        names: &WEEKDAYS,
        first_name: 0,
        days: Days::OfWeek,
        allowed: "0-7 (0 and 7 are Sunday), SUN-SAT, *, ?, lists, ranges and steps, 5L (the last Friday), 5#2 (the second Friday)",
    },
];

impl Field {
    /// Checks a whole field, in upper case.
    pub(super) fn check(&self, text: &str) -> Result<(), CronError> {
        match self.days {
            Days::OfMonth | Days::OfWeek if text == "?" => return Ok(()),
            Days::None | Days::OfMonth | Days::OfWeek => {}
        }
        for item in text.split(',') {
            self.check_item(item).map_err(|problem| self.error(item, problem))?;
        }
        let has = |item: &str| text.split(',').any(|found| found == item);
        if has("L") && has("LW") {
            return Err(self.error(text, "L and LW do not go together"));
        }
        if has("*") && text != "*" {
            return Err(self.error(text, "* already holds everything"));
        }
        Ok(())
    }

    fn error(&self, found: &str, problem: &'static str) -> CronError {
        CronError::Field { field: self.name, found: found.to_owned(), problem, allowed: self.allowed }
    }

    fn check_item(&self, item: &str) -> Result<(), &'static str> {
        if item.is_empty() {
            return Err("an item is empty");
        }
        match self.days {
            Days::None => {}
            Days::OfMonth => {
                if item == "L" || item == "LW" {
                    return Ok(());
                }
                if let Some(day) = item.strip_suffix('W') {
                    return self.value(day).map(drop);
                }
            }
            Days::OfWeek => {
                if item == "L" {
                    return Err("L needs a weekday before it");
                }
                if let Some((weekday, which)) = item.split_once('#') {
                    self.value(weekday)?;
                    return match which {
                        "1" | "2" | "3" | "4" | "5" | "L" => Ok(()),
                        _ => Err("after # comes 1 to 5, or L"),
                    };
                }
                if let Some(weekday) = item.strip_suffix('L') {
                    return self.value(weekday).map(drop);
                }
            }
        }
        let (range, step) = item.split_once('/').map_or((item, None), |(range, step)| (range, Some(step)));
        if let Some((first, last)) = range.split_once('-') {
            self.check_range(first, last)?;
        } else if range != "*" {
            self.value(range)?;
            if step.is_some() {
                return Err("a step needs * or a range before it");
            }
        }
        let Some(step) = step else { return Ok(()) };
        match number(step) {
            None => Err("the step is not a number"),
            Some(0) => Err("the step is 0"),
            Some(step) if step > self.most => Err("the step is larger than the field"),
            Some(_) => Ok(()),
        }
    }

    fn check_range(&self, first: &str, last: &str) -> Result<(), &'static str> {
        let first = self.value(first)?;
        // A week may end on its Sunday.
        let last = match self.days {
            Days::OfWeek if last == "SUN" => self.most,
            Days::None | Days::OfMonth | Days::OfWeek => self.value(last)?,
        };
        if first > last { Err("the range begins after it ends") } else { Ok(()) }
    }

    fn value(&self, text: &str) -> Result<u32, &'static str> {
        let named = self.names.iter().zip(self.first_name..).find(|(name, _)| **name == text).map(|(_, value)| value);
        match named.or_else(|| number(text)) {
            Some(value) if (self.least..=self.most).contains(&value) => Ok(value),
            Some(_) => Err("the value is out of range"),
            None => Err("this is not a value of the field"),
        }
    }
}

/// One or two digits.
fn number(text: &str) -> Option<u32> {
    ((1..=2).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok()).flatten()
}

/// Whether a checked field names values next to each other by repetition: `*` or a range, with no step but 1.
pub(super) fn repeats_each(text: &str) -> bool {
    text.split(',').any(|item| {
        let (range, step) = item.split_once('/').unwrap_or((item, "1"));
        let several = range == "*" || range.split_once('-').is_some_and(|(first, last)| number(first) != number(last));
        several && number(step) == Some(1)
    })
}

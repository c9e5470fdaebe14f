//! The `[[calendar]]` tables: a name, days off, and what they extend. And the calendars that a job may name.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use chrono::{Datelike as _, NaiveDate, Weekday};

use super::error::Scope;
use super::reader::{Checked, Context, Reported, TableReader};
use super::tree::{Node, Value};
use super::values::{Read, choice, did_you_mean, found, nearest, parsed, quoted, text};
use crate::domain::ElectionName;
use crate::domain::calendar::{BuiltIn, CalendarDefinition};
use crate::schedule::calendar::{USUAL_WEEKEND, define};

/// The most calendars of a schedule.
const MOST_CALENDARS: usize = 64;
/// The most holidays of a calendar.
const MOST_HOLIDAYS: usize = 5_000;
/// The most calendars that one extends.
const MOST_EXTENDED: usize = 8;
/// The years that a holiday may lie in.
const HOLIDAY_YEARS: RangeInclusive<i32> = 2000..=2199;
/// The days of the week, as in cron expressions.
const DAYS: [(&str, Weekday); 7] = [
    ("MON", Weekday::Mon),
    ("TUE", Weekday::Tue),
    ("WED", Weekday::Wed),
    ("THU", Weekday::Thu),
    ("FRI", Weekday::Fri),
    ("SAT", Weekday::Sat),
    ("SUN", Weekday::Sun),
];

/// The calendars that a job may name, by name. One with findings is known and [`Reported`].
pub(super) struct Calendars(BTreeMap<String, Checked<CalendarDefinition>>);

impl Calendars {
    /// The calendar that a node names; the sentence about it, or nothing where it was reported already.
    pub(super) fn named(&self, node: &Node) -> Read<Checked<CalendarDefinition>> {
        let name = text(node)?;
        self.0.get(name).cloned().ok_or_else(|| unknown(name, self.0.keys().map(String::as_str)))
    }
}

fn unknown<'a>(name: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    let near = did_you_mean(nearest(name, known.clone()));
    let known: Vec<&str> = known.collect();
    format!("found {}, expected a calendar: {}{near}", quoted(name), known.join(", "))
}

/// One table, before what it extends is known.
struct Own<'a> {
    node: &'a Node,
    path: String,
    weekend: Option<Vec<Weekday>>,
    holidays: BTreeSet<NaiveDate>,
    extends: Vec<String>,
}

/// Reads the tables and puts the calendars together.
pub(super) fn calendars(context: &Context<'_>, tables: &[Node]) -> Calendars {
    let mut known: BTreeMap<String, Checked<CalendarDefinition>> =
        BuiltIn::ALL.into_iter().map(|of| (of.as_str().to_owned(), built_in(of))).collect();
    if tables.len() > MOST_CALENDARS {
        let problem = format!("found {} calendars, expected at most {MOST_CALENDARS}", tables.len());
        context.push(&tables[MOST_CALENDARS].key_place, "calendar", problem, Scope::Whole);
        return Calendars(known);
    }
    let mut own: BTreeMap<String, Own<'_>> = BTreeMap::new();
    for (number, node) in tables.iter().enumerate() {
        let Ok((name, read)) = calendar(context, number, node) else { continue };
        if let Some(first) = own.get(&name).map(|other| &other.node.key_place) {
            let problem = format!("another calendar has this name too ({first}), expected each once");
            context.push(&node.key_place, &format!("calendar[{name}].name"), problem, Scope::Whole);
            continue;
        }
        // What could not be read is known all the same: who names it is not told that there is none.
        known.insert(name.clone(), Err(Reported));
        if let Ok(read) = read {
            own.insert(name, read);
        }
    }
    let mut left: Vec<String> = own.keys().cloned().collect();
    while !left.is_empty() {
        let before = left.len();
        left.retain(|name| {
            let waits = own[name]
                .extends
                .iter()
                .any(|of| of == name || own.contains_key(of) && matches!(known.get(of), Some(Err(_))));
            if !waits {
                let made = resolved(context, name, &own[name], &known);
                known.insert(name.clone(), made);
                own.remove(name);
            }
            waits
        });
        if left.len() == before {
            for name in &left {
                let at = &own[name];
                let problem = "extends itself, by a circle of names; expected an end of it".to_owned();
                context.push(&at.node.key_place, &format!("{}.extends", at.path), problem, Scope::Whole);
            }
            break;
        }
    }
    Calendars(known)
}

fn built_in(of: BuiltIn) -> Checked<CalendarDefinition> {
    define(of.as_str(), BTreeSet::from([of]), &USUAL_WEEKEND, BTreeSet::new()).map_err(|_| Reported)
}

/// One table's name, and the rest of it.
fn calendar<'a>(context: &Context<'_>, number: usize, node: &'a Node) -> Checked<(String, Checked<Own<'a>>)> {
    let path = match &node.value {
        Value::Table(table) => match table.get("name").map(|name| &name.value) {
            Some(Value::Text(name)) if ElectionName::new(name.as_str()).is_ok() => format!("calendar[{name}]"),
            _ => format!("calendar[#{}]", number + 1),
        },
        _ => format!("calendar[#{}]", number + 1),
    };
    let mut table = TableReader::new(context, path.clone(), node)?;
    let name = table.required("name", "a name of a-z, 0-9 and '-'", name);
    let weekend = table.list("weekend", DAYS.len(), |node| choice(node, &DAYS));
    let holidays = table.list("holidays", MOST_HOLIDAYS, holiday);
    let extends = table.optional("extends", names);
    let twice = |days: &[NaiveDate]| {
        let mut seen = BTreeSet::new();
        days.iter().find(|day| !seen.insert(**day)).copied()
    };
    let holidays = holidays.and_then(|days| {
        let days = days.unwrap_or_default();
        match twice(&days) {
            Some(day) => {
                Err(table.refuse("holidays", format!("{day} is there twice, expected each day once"), Scope::Key))
            }
            None => Ok(days.into_iter().collect()),
        }
    });
    table.finish();
    let read = match (weekend, holidays, extends) {
        (Ok(weekend), Ok(holidays), Ok(extends)) => {
            Ok(Own { node, path, weekend, holidays, extends: extends.unwrap_or_default() })
        }
        _ => Err(Reported),
    };
    Ok((name?, read))
}

fn name(node: &Node) -> Read<String> {
    // The same letters as other names.
    let name = parsed(node, |text| {
        ElectionName::new(text)
            .map_err(|_| format!("{} is not a calendar's name: 1 to 32 of a-z, 0-9 and '-'", quoted(text)))
    })?;
    match BuiltIn::ALL.into_iter().find(|of| of.as_str() == name.as_str()) {
        Some(of) => Err(format!("{} is built in; choose another name, and extend it", of.as_str())),
        None => Ok(name.as_str().to_owned()),
    }
}

fn holiday(node: &Node) -> Read<NaiveDate> {
    let (first, last) = (HOLIDAY_YEARS.start(), HOLIDAY_YEARS.end());
    let expected = format!("a date of the years {first} to {last} in quotes, such as \"2027-12-27\"");
    let Value::Text(written) = &node.value else { return Err(format!("found {}, expected {expected}", found(node))) };
    match NaiveDate::parse_from_str(written, "%Y-%m-%d") {
        Ok(day) if day.to_string() == *written && HOLIDAY_YEARS.contains(&day.year()) => Ok(day),
        Ok(_) | Err(_) => Err(format!("found {}, expected {expected}", quoted(written))),
    }
}

/// One name, or a list of them.
fn names(node: &Node) -> Read<Vec<String>> {
    match &node.value {
        Value::List(items) if items.len() <= MOST_EXTENDED => {
            items.iter().map(|item| text(item).map(ToOwned::to_owned)).collect()
        }
        Value::List(items) => Err(format!("found {} names, expected at most {MOST_EXTENDED}", items.len())),
        Value::Text(_) | Value::Whole(_) | Value::Flag(_) | Value::Other(_) | Value::Table(_) | Value::Variable(_) => {
            text(node).map(|name| vec![name.to_owned()])
        }
    }
}

/// A day is off where it is in any of what a calendar extends; its own weekend is added, and is the usual one where neither it
/// nor anything that it extends has one.
fn resolved(
    context: &Context<'_>,
    name: &str,
    own: &Own<'_>,
    known: &BTreeMap<String, Checked<CalendarDefinition>>,
) -> Checked<CalendarDefinition> {
    let push = |key: &str, problem: String| {
        context.push(&own.node.key_place, &format!("{}{key}", own.path), problem, Scope::Whole);
        Reported
    };
    let (mut built_in, mut holidays) = (BTreeSet::new(), own.holidays.clone());
    let mut weekend: Vec<Weekday> = own.weekend.clone().unwrap_or_default();
    for extended in &own.extends {
        let extended = match known.get(extended) {
            Some(Ok(extended)) => extended,
            Some(Err(Reported)) => return Err(Reported),
            None => return Err(push(".extends", unknown(extended, known.keys().map(String::as_str)))),
        };
        built_in.extend(&extended.built_in);
        holidays.extend(&extended.holidays);
        weekend.extend(&extended.weekend);
    }
    if own.weekend.is_none() && own.extends.is_empty() {
        weekend.extend(USUAL_WEEKEND);
    }
    define(name, built_in, &weekend, holidays).map_err(|error| push("", error.to_string()))
}

//! Prints ticks for `scripts/ticks/compare.py`, which works them out a second time by other means.
//!
//! Reads a case per line, fields separated by tabs: zone, gap rule, fold rule, from and to (RFC 3339), expression. The rules
//! may be `default`. Prints a line per case: its ticks in (from, to] as seconds since 1970, separated by blanks; or
//! `refused: ` and why. The first line names the release of the zone data.
//!
//! A line that begins with `days off` is another question: calendar and year; its answer are the days off from Monday to Friday.
//! One that begins with `rolled` has calendar, roll and days (separated by blanks); its answer are the days that each is due on.

use std::collections::BTreeSet;
use std::io::{BufRead, Write};
use std::time::Duration;

use bursar::domain::calendar::{BuiltIn, Roll};
use bursar::domain::job::{CatchUpOrder, CutoffRule, FoldRule, GapRule, Misfire, Overlap, Timing};
use bursar::schedule::calendar::{Calendar, USUAL_WEEKEND, days_off_of, define};
use bursar::schedule::{Cron, Schedule, default_rules};
use chrono::{DateTime, Datelike, NaiveDate, Utc};

fn timing(fields: &[&str]) -> Result<Timing, Box<dyn std::error::Error>> {
    let [zone, gap, fold, _, _, cron] = fields else { return Err("six fields expected".into()) };
    let defaults = default_rules(&Cron::parse(cron)?);
    let gap = match *gap {
        "default" => defaults.0,
        "shift" => GapRule::Shift,
        "skip" => GapRule::Skip,
        other => return Err(format!("no gap rule: {other}").into()),
    };
    let fold = match *fold {
        "default" => defaults.1,
        "first" => FoldRule::First,
        "last" => FoldRule::Last,
        "both" => FoldRule::Both,
        other => return Err(format!("no fold rule: {other}").into()),
    };
    Ok(Timing {
        cron: (*cron).to_owned(),
        timezone: zone.parse()?,
        gap,
        fold,
        misfire: Misfire::RunAll,
        misfire_grace: Duration::ZERO,
        catch_up_window: Duration::ZERO,
        catch_up_max: 1,
        catch_up_order: CatchUpOrder::Oldest,
        overlap: Overlap::Queue,
        cutoff: CutoffRule::Before(Duration::ZERO),
        business_days: None,
        run_deadline: None,
    })
}

fn built_in(name: &str) -> Result<BuiltIn, String> {
    BuiltIn::ALL.into_iter().find(|of| of.as_str() == name).ok_or_else(|| format!("no calendar: {name}"))
}

fn days_off(calendar: &str, year: &str) -> Result<String, Box<dyn std::error::Error>> {
    let days: BTreeSet<NaiveDate> = days_off_of(built_in(calendar)?, year.parse()?).into_iter().collect();
    let days: Vec<String> =
        days.iter().filter(|day| !USUAL_WEEKEND.contains(&day.weekday())).map(NaiveDate::to_string).collect();
    Ok(days.join(" "))
}

fn rolled(calendar: &str, roll: &str, days: &str) -> Result<String, Box<dyn std::error::Error>> {
    let rolls = [Roll::Following, Roll::ModifiedFollowing, Roll::Preceding];
    let roll = rolls.into_iter().find(|known| known.as_str() == roll).ok_or_else(|| format!("no roll: {roll}"))?;
    let definition = define(calendar, BTreeSet::from([built_in(calendar)?]), &USUAL_WEEKEND, BTreeSet::new())?;
    let calendar = Calendar::new(&definition);
    let due = |day: &str| Ok(calendar.rolled(day.parse()?, roll).to_string());
    let due: Result<Vec<String>, chrono::ParseError> = days.split(' ').map(due).collect();
    Ok(due?.join(" "))
}

fn ticks(line: &str) -> Result<String, Box<dyn std::error::Error>> {
    let fields: Vec<&str> = line.split('\t').collect();
    match fields.as_slice() {
        ["days off", calendar, year] => return days_off(calendar, year),
        ["rolled", calendar, roll, days] => return rolled(calendar, roll, days),
        _ => {}
    }
    let schedule = Schedule::new(&timing(&fields)?)?;
    let to: DateTime<Utc> = fields[4].parse()?;
    let mut mark: DateTime<Utc> = fields[3].parse()?;
    let mut seconds: Vec<String> = Vec::new();
    loop {
        let page = schedule.ticks_between(mark, to);
        seconds.extend(page.ticks.iter().map(|tick| tick.nominal.timestamp().to_string()));
        mark = page.complete_until;
        if !page.more {
            return Ok(seconds.join(" "));
        }
    }
}

fn main() -> std::io::Result<()> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    writeln!(out, "{}", chrono_tz::IANA_TZDB_VERSION)?;
    for line in std::io::stdin().lock().lines() {
        let answer = ticks(&line?).unwrap_or_else(|error| format!("refused: {error}"));
        writeln!(out, "{answer}")?;
    }
    out.flush()
}

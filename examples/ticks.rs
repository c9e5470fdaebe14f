//! Prints ticks for `scripts/ticks/compare.py`, which works them out a second time by other means.
//!
//! Reads a case per line, fields separated by tabs: zone, gap rule, fold rule, from and to (RFC 3339), expression. The rules
//! may be `default`. Prints a line per case: its ticks in (from, to] as seconds since 1970, separated by blanks; or
//! `refused: ` and why. The first line names the release of the zone data.

use std::io::{BufRead, Write};
use std::time::Duration;

use bursar::domain::job::{CatchUpOrder, CutoffRule, FoldRule, GapRule, Misfire, Overlap, Timing};
use bursar::schedule::{Cron, Schedule, default_rules};
use chrono::{DateTime, Utc};

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
        run_deadline: None,
    })
}

fn ticks(line: &str) -> Result<String, Box<dyn std::error::Error>> {
    let fields: Vec<&str> = line.split('\t').collect();
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

//! `bursar check`: what is wrong with configuration and schedule, what runs next, and what to look out for.

use std::fmt::Write as _;
use std::time::Duration;

use chrono::{DateTime, Utc};
use clap::Args;
use serde::Serialize;

use super::check_carries::{self, Carries};
use super::check_queries::{self, Queries};
use super::check_ways;
use super::coming::{ComingTick, notes};
use super::context::Context;
use super::error::{CommandError, Exit};
use super::output::{dash, time};
use super::request;
use crate::app;
use crate::clock;
use crate::config::{Config, renewal_interval};
use crate::domain::job::{FoldRule, GapRule, JobDefinition};
use crate::schedule::{DAY_RULE, Schedule, ZONE_DATA, zones};

/// How many ticks ahead are searched for what a zone does to them: a bit more than a year of daily ones.
const LOOK_AHEAD_TICKS: usize = 400;
/// Round trips measured; the slowest counts.
const ROUND_TRIPS: usize = 5;
/// A round trip may take at most this part of the time between two renewals, for a quiet life.
const ROUND_TRIP_SHARE: u32 = 20;
/// How long the coordinator is waited for.
const MEASURE_WITHIN: Duration = Duration::from_secs(5);

/// Validate configuration and schedule; show what runs next and what to look out for
///
/// Everything that is wrong is reported in one run, each with file, line, key, what was found
/// and what is allowed; the exit code is then 78. Warnings do not change the exit code. The
/// coordinator is asked for its round trip where it can be reached, and the store whether it
/// understands the queries of `sql`, `http` and `command` jobs (they are prepared and not run;
/// one that it does not understand is an error) and whether jobs that are not in the schedule
/// have open carries; nothing is changed anywhere, so it fits into a pipeline.
///
/// Example: bursar check --config production.toml --offline
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct CheckArgs {
    /// Coming ticks shown of each job.
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = clap::value_parser!(u16).range(0..=1000))]
    ticks: u16,
    /// Show the ticks after this time instead of now, RFC 3339.
    #[arg(long, value_name = "TIME", value_parser = request::instant)]
    after: Option<DateTime<Utc>>,
    /// Do not try to reach coordinator and store.
    #[arg(long)]
    offline: bool,
}

#[derive(Debug, Serialize)]
struct Checked {
    schedule_fingerprint: String,
    /// The release of the zone data in the binary.
    zone_data: &'static str,
    jobs: Vec<CheckedJob>,
    coordinator: Option<Measured>,
    /// How many queries the store was asked about; why it was not, where it was not.
    queries: Queries,
    /// Jobs that are not in the schedule, or no ledgers in it, and have open carries; why it was not asked, where it was not.
    carries: Carries,
    warnings: Vec<String>,
}

#[derive(Debug, Serialize)]
struct CheckedJob {
    job: String,
    election: String,
    handler: &'static str,
    cron: String,
    timezone: String,
    /// What happens at the changes of the zone's offset.
    dst: String,
    /// How days of month and of week go together, where both are given.
    day_rule: Option<&'static str>,
    /// The calendar, and what becomes of ticks on its days off.
    calendar: Option<String>,
    next: Vec<ComingTick>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Measured {
    /// A file of elections that is not there yet; asking would make it.
    ToBeMade {
        to_be_made: String,
    },
    Reached {
        slowest_round_trip_ms: u64,
        lease_ttl_ms: u64,
        renewed_every_ms: u64,
    },
    Away {
        away: String,
    },
}

impl CheckArgs {
    pub(super) fn execute(self, context: &Context) -> Result<Exit, CommandError> {
        let (config, schedule) = context.config_and_schedule()?;
        let after = self.after.unwrap_or_else(clock::wall);
        let mut warnings = Vec::new();
        let mut jobs = Vec::new();
        for job in &schedule.jobs {
            jobs.push(check_job(job, after, self.ticks, &mut warnings)?);
        }
        if schedule.jobs.is_empty() {
            warnings.push(format!("there are no jobs: {} is not there, or empty", config.schedule.display()));
        }
        warnings.extend(check_ways::unprotected(&config, &schedule.jobs));
        let mut coordinator = None;
        let mut queries = Queries::LeftOut { left_out: "--offline".to_owned() };
        let mut carries = Carries::LeftOut { left_out: "--offline".to_owned() };
        if !self.offline {
            Context::block_on(async {
                coordinator = Some(measure(&config, &mut warnings).await);
                queries = check_queries::ask(&config, &schedule.jobs).await?;
                carries = check_carries::ask(&config, &schedule.jobs, &mut warnings).await;
                warnings.extend(check_ways::unusable_files(&schedule.jobs).await);
                Ok(Exit::Done)
            })?;
        }
        if let Queries::LeftOut { left_out } = &queries
            && check_queries::are_in(&schedule.jobs)
        {
            warnings.push(format!("the queries of jobs were not checked: {left_out}"));
        }
        let fingerprint = schedule.fingerprint();
        let checked = Checked {
            schedule_fingerprint: fingerprint,
            zone_data: ZONE_DATA,
            jobs,
            coordinator,
            queries,
            carries,
            warnings,
        };
        if context.output().is_json() {
            context.output().json(&checked)?;
        } else {
            show(context, &checked)?;
        }
        Ok(Exit::Done)
    }
}

fn check_job(
    job: &JobDefinition,
    after: DateTime<Utc>,
    ticks: u16,
    warnings: &mut Vec<String>,
) -> Result<CheckedJob, CommandError> {
    let schedule = Schedule::new(&job.timing).map_err(|error| CommandError::Unfit(format!("{}: {error}", job.name)))?;
    let next = schedule.ticks_after(after).take(ticks.into()).map(|tick| ComingTick::of(&schedule, &tick)).collect();
    if let Some(warning) = short_months(schedule.cron().as_str()) {
        warnings.push(format!("{}: {warning}", job.name));
    }
    if let Some(warning) = zones::warning(job.timing.timezone) {
        warnings.push(format!("{}: {warning}", job.name));
    }
    if !schedule.cron().repeats_hourly() {
        let odd = schedule.ticks_after(after).take(LOOK_AHEAD_TICKS).find(|tick| tick.note.is_some());
        if let Some(odd) = odd {
            let at = time(odd.nominal);
            let notes = notes(&schedule, &odd).join("; ");
            warnings.push(format!("{}: the tick at {at} is at a change of the clocks: {notes}", job.name));
        }
    }
    Ok(CheckedJob {
        job: job.name.to_string(),
        election: job.election.to_string(),
        handler: job.handler.as_str(),
        cron: job.timing.cron.clone(),
        timezone: job.timing.timezone.name().to_owned(),
        dst: dst(job.timing.gap, job.timing.fold),
        day_rule: schedule.cron().joins_days().then_some(DAY_RULE),
        calendar: job
            .timing
            .business_days
            .as_ref()
            .map(|days| format!("{}, {}", days.calendar.name, days.roll.as_str())),
        next,
    })
}

fn dst(gap: GapRule, fold: FoldRule) -> String {
    let gap = match gap {
        GapRule::Shift => "a local time that does not exist is shifted forward",
        GapRule::Skip => "a local time that does not exist is skipped",
    };
    let fold = match fold {
        FoldRule::First => "of two the first is run",
        FoldRule::Last => "of two the last is run",
        FoldRule::Both => "of two both are run",
    };
    format!("{gap}, {fold}")
}

/// Warns of days of the month that some months do not have.
fn short_months(cron: &str) -> Option<String> {
    let fields: Vec<&str> = cron.split_ascii_whitespace().collect();
    let days = if fields.len() == 6 { fields.get(3) } else { fields.get(2) }?;
    let day = days.split([',', '-']).filter_map(|part| part.parse::<u32>().ok()).filter(|day| (29..=31).contains(day));
    // A list that has an earlier day or a range from one is still short at its end.
    let day = day.max()?;
    let last = if days.contains('L') { "" } else { "; L means the last day of every month" };
    Some(format!("day {day} does not exist in every month: those months have no tick for it{last}"))
}

async fn measure(config: &Config, warnings: &mut Vec<String>) -> Measured {
    if let Some(file) = app::lease_file_to_be_made(config) {
        return Measured::ToBeMade { to_be_made: file.display().to_string() };
    }
    let coordinator = app::coordinator(config);
    let mut slowest = Duration::ZERO;
    let measuring = async {
        for round in 0..=ROUND_TRIPS {
            let sent = clock::boottime();
            coordinator.list_replicas().await.map_err(|error| error.to_string())?;
            // The first one connects.
            if round > 0 {
                slowest = slowest.max(clock::boottime().since(sent));
            }
        }
        Ok(())
    };
    let outcome = tokio::time::timeout(MEASURE_WITHIN, measuring)
        .await
        .unwrap_or_else(|_elapsed| Err(format!("no answer within {MEASURE_WITHIN:?}")));
    if let Err(away) = outcome {
        warnings.push(format!("the coordinator's round trip was not measured: {away}"));
        return Measured::Away { away };
    }
    let (ttl, every) = (config.coordinator.lease_ttl, renewal_interval(config.coordinator.lease_ttl));
    if slowest * ROUND_TRIP_SHARE > every {
        warnings.push(format!(
            "coordinator.lease_ttl {ttl:?} is renewed every {every:?}, and a round trip took up to {slowest:?}: expected at most \
             a {ROUND_TRIP_SHARE}th of that time; a lease_ttl of {} s or more would be calm",
            (slowest * ROUND_TRIP_SHARE * 5).as_secs() + 1
        ));
    }
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    Measured::Reached {
        slowest_round_trip_ms: millis(slowest),
        lease_ttl_ms: millis(ttl),
        renewed_every_ms: millis(every),
    }
}

fn show(context: &Context, checked: &Checked) -> Result<(), CommandError> {
    let mut text = String::new();
    for job in &checked.jobs {
        // Writing to a String does not fail.
        let _ = writeln!(text, "{} ({}, election {})", job.job, job.handler, job.election);
        let _ = writeln!(text, "  {} in {}", job.cron, job.timezone);
        let _ = writeln!(text, "  clock changes: {}", job.dst);
        if let Some(rule) = job.day_rule {
            let _ = writeln!(text, "  days: {rule}");
        }
        if let Some(calendar) = &job.calendar {
            let _ = writeln!(text, "  calendar: {calendar}");
        }
        for tick in &job.next {
            let _ = write!(text, "  next: {} ({}), cutoff {}", time(tick.tick), tick.local, time(tick.cutoff_at));
            for note in &tick.notes {
                let _ = write!(text, "; {note}");
            }
            text.push('\n');
        }
        text.push('\n');
    }
    let coordinator = match &checked.coordinator {
        None => dash(),
        Some(Measured::ToBeMade { to_be_made }) => format!("{to_be_made} is not there yet; the first replica makes it"),
        Some(Measured::Away { .. }) => "not reached".to_owned(),
        Some(Measured::Reached { slowest_round_trip_ms, lease_ttl_ms, renewed_every_ms }) => format!(
            "round trips of up to {slowest_round_trip_ms} ms; lease of {lease_ttl_ms} ms, renewed every {renewed_every_ms} ms"
        ),
    };
    let _ = writeln!(text, "coordinator: {coordinator}");
    if let Queries::Asked { understood: understood @ 1.. } = &checked.queries {
        let _ = writeln!(text, "queries: the store understands all {understood} of them");
    }
    let _ = writeln!(text, "schedule: {} jobs, fingerprint {}", checked.jobs.len(), checked.schedule_fingerprint);
    let _ = writeln!(text, "zone data: {}", checked.zone_data);
    for warning in &checked.warnings {
        let _ = writeln!(text, "warning: {warning}");
    }
    text.push_str("configuration and schedule are valid");
    context.output().line(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_that_some_months_lack_are_warned_of() {
        for cron in ["0 2 31 * *", "0 0 2 29 * *", "0 2 1,30 * *", "0 2 25-31 * *"] {
            assert!(short_months(cron).is_some(), "{cron}");
        }
        for cron in ["0 2 L * *", "0 2 28 * *", "30 31 * * *", "0 2 * * *", "0 0 2 L * *", "0 2 * * 1#3"] {
            assert_eq!(short_months(cron), None, "{cron}");
        }
    }
}

//! `bursar plan`: what comes when, and what an edit would change; from the schedule file alone.

mod against;

use std::path::PathBuf;

use chrono::{DateTime, TimeDelta, Utc};
use clap::Args;
use serde::Serialize;

use super::coming::{COLUMNS, ComingTick, coalesced};
use super::context::Context;
use super::error::{CommandError, Exit};
use super::output::time;
use super::request;
use crate::clock;
use crate::config::ScheduleFile;
use crate::domain::JobName;
use crate::domain::job::JobDefinition;
use crate::schedule::plan::CALL_TICKS;
use crate::schedule::{Schedule, ZONE_DATA, zones};

/// Show coming ticks, with what clock changes and holidays do to them; or what an edit would change
///
/// Works from the schedule file alone: nothing is asked of the store or the coordinator, and
/// nothing is changed. Times are in UTC and on the job's own clock with its offset. With
/// --against, the file that is running now is compared with this one: which ticks of the next
/// days are new, gone, or due at another time. An edit fires nothing at once. Ticks that a
/// calendar makes due at one time are one run: the others are coalesced into it.
///
/// Examples: bursar plan --days 31 --job daily-payouts
///           bursar plan --schedule edited.toml --against schedule.toml
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct PlanArgs {
    /// How many days ahead.
    #[arg(long, default_value_t = 14, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=366))]
    days: u16,
    /// Only this job.
    #[arg(long, value_name = "JOB")]
    job: Option<JobName>,
    /// Ticks shown of each job; those beyond it are counted.
    #[arg(long, default_value_t = 20, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    ticks: u32,
    /// Show the ticks after this time instead of now, RFC 3339.
    #[arg(long, value_name = "TIME", value_parser = request::instant)]
    after: Option<DateTime<Utc>>,
    /// The schedule file; without it the one that the configuration names.
    #[arg(long, value_name = "FILE")]
    schedule: Option<PathBuf>,
    /// The schedule that is running: shows what the other one would change.
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
}

/// The part of the future that is looked at.
#[derive(Debug, Clone, Copy)]
struct Span {
    after: DateTime<Utc>,
    until: DateTime<Utc>,
    /// Ticks shown of each job.
    shown: usize,
}

#[derive(Debug, Serialize)]
struct Plan {
    after: DateTime<Utc>,
    until: DateTime<Utc>,
    zone_data: &'static str,
    schedule_fingerprint: String,
    jobs: Vec<PlannedJob>,
}

#[derive(Debug, Serialize)]
struct PlannedJob {
    job: String,
    election: String,
    cron: String,
    timezone: String,
    /// What the zone data in the binary does not know of the zone.
    warning: Option<String>,
    calendar: Option<String>,
    calendar_fingerprint: Option<String>,
    roll: Option<&'static str>,
    ticks: Vec<ComingTick>,
    /// Ticks in the span that are not among these.
    more: usize,
    /// Whether there are still more than were looked for.
    cut_short: bool,
    left_out: Vec<LeftOut>,
}

/// A local time that does not exist and has no tick.
#[derive(Debug, Serialize)]
struct LeftOut {
    local: String,
    instead_of: DateTime<Utc>,
}

impl PlanArgs {
    pub(super) fn execute(self, context: &Context) -> Result<Exit, CommandError> {
        let schedule = match &self.schedule {
            Some(file) => ScheduleFile::load(file)?,
            None => context.config_and_schedule()?.1,
        };
        let after = self.after.unwrap_or_else(clock::wall);
        let until = after
            .checked_add_signed(TimeDelta::days(self.days.into()))
            .ok_or_else(|| CommandError::Usage(format!("{} days after {after} is out of range", self.days)))?;
        let span = Span { after, until, shown: usize::try_from(self.ticks).unwrap_or(usize::MAX) };
        if let Some(file) = &self.against {
            let running = ScheduleFile::load(file)?;
            known(&[&running, &schedule], self.job.as_ref())?;
            against::show(context.output(), &running, &schedule, self.job.as_ref(), span)?;
            return Ok(Exit::Done);
        }
        known(&[&schedule], self.job.as_ref())?;
        let jobs = schedule.jobs.iter().filter(|job| self.job.as_ref().is_none_or(|only| *only == job.name));
        let plan = Plan {
            after,
            until,
            zone_data: ZONE_DATA,
            schedule_fingerprint: schedule.fingerprint(),
            jobs: jobs.map(|job| planned(job, span)).collect::<Result<_, _>>()?,
        };
        if context.output().is_json() {
            context.output().json(&plan)?;
        } else {
            show(context, &plan)?;
        }
        Ok(Exit::Done)
    }
}

/// Refuses a job that is in none of the files.
fn known(files: &[&ScheduleFile], job: Option<&JobName>) -> Result<(), CommandError> {
    let jobs = || files.iter().flat_map(|file| &file.jobs);
    match job {
        Some(job) if jobs().all(|known| known.name != *job) => {
            let names: Vec<&str> = jobs().take(20).map(|known| known.name.as_str()).collect();
            Err(CommandError::Refused(format!(
                "there is no job {job} in the schedule; there are: {}",
                names.join(", ")
            )))
        }
        Some(_) | None => Ok(()),
    }
}

/// A definition's schedule; it was read when the file was.
fn schedule_of(job: &JobDefinition) -> Result<Schedule, CommandError> {
    Schedule::new(&job.timing).map_err(|error| CommandError::Unfit(format!("{}: {error}", job.name)))
}

fn planned(job: &JobDefinition, span: Span) -> Result<PlannedJob, CommandError> {
    let schedule = schedule_of(job)?;
    let mut coming = schedule.ticks_after(span.after).take_while(|tick| tick.due_at <= span.until);
    let mut ticks: Vec<ComingTick> =
        coming.by_ref().take(span.shown).map(|tick| ComingTick::of(&schedule, &tick)).collect();
    coalesced(&mut ticks);
    let more = coming.count();
    let ticks_found = ticks.len() + more;
    // Every tick is walked over: not of a job that repeats all the time.
    let left_out =
        if schedule.cron().repeats_hourly() { Vec::new() } else { schedule.left_out_between(span.after, span.until) };
    let days = job.timing.business_days.as_ref();
    Ok(PlannedJob {
        job: job.name.to_string(),
        election: job.election.to_string(),
        cron: job.timing.cron.clone(),
        timezone: job.timing.timezone.name().to_owned(),
        warning: zones::warning(job.timing.timezone),
        calendar: days.map(|days| days.calendar.name.clone()),
        calendar_fingerprint: days.map(|days| days.calendar.fingerprint.clone()),
        roll: days.map(|days| days.roll.as_str()),
        ticks,
        more,
        cut_short: ticks_found >= CALL_TICKS,
        left_out: left_out
            .into_iter()
            .map(|(at, local)| LeftOut { local: local.to_string(), instead_of: at })
            .collect(),
    })
}

fn show(context: &Context, plan: &Plan) -> Result<(), CommandError> {
    let output = context.output();
    output.line(&format!(
        "ticks due after {} and up to {}; zone data {}",
        time(plan.after),
        time(plan.until),
        plan.zone_data
    ))?;
    for job in &plan.jobs {
        let calendar = match (&job.calendar, job.roll) {
            (Some(calendar), Some(roll)) => format!(", calendar {calendar}, roll {roll}"),
            (Some(_) | None, _) => String::new(),
        };
        let heading = format!("\n{} ({}): {} in {}{calendar}", job.job, job.election, job.cron, job.timezone);
        let rows: Vec<Vec<String>> = job.ticks.iter().map(ComingTick::row).collect();
        output.table(&heading, "no tick in these days", &COLUMNS, &rows)?;
        if let Some(warning) = &job.warning {
            output.line(&format!("warning: {warning}"))?;
        }
        if job.more > 0 {
            let at_least = if job.cut_short { "at least " } else { "" };
            output.line(&format!("and {at_least}{} more", job.more))?;
        }
        for left_out in &job.left_out {
            output.line(&format!("{} does not exist there: no tick", left_out.local))?;
        }
    }
    Ok(())
}

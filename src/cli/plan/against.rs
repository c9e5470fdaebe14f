//! `bursar plan --against`: what an edit adds, removes and moves.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;

use super::super::coming::{COLUMNS, ComingTick};
use super::super::error::CommandError;
use super::super::output::{Output, short, time};
use super::{Span, schedule_of};
use crate::config::ScheduleFile;
use crate::domain::JobName;
use crate::domain::job::JobDefinition;
use crate::schedule::{Schedule, Tick, compare};

/// The most settings that are named of one job.
const SETTINGS_SHOWN: usize = 20;
/// What an edit does at the moment at which it is taken over.
const AT_ONCE: &str = "Nothing is fired at once: what the running definition owes up to the edit is settled by its own rules, and of \
                       the new one only what falls due afterwards counts. What an edit moves into the past is recorded as skipped.";

#[derive(Debug, Serialize)]
struct Edit {
    after: DateTime<Utc>,
    until: DateTime<Utc>,
    running_fingerprint: String,
    schedule_fingerprint: String,
    fires_at_once: bool,
    unchanged_jobs: usize,
    jobs: Vec<EditedJob>,
}

#[derive(Debug, Serialize)]
struct EditedJob {
    job: String,
    change: Change,
    /// Settings that are not the same.
    settings: Vec<String>,
    added: Vec<ComingTick>,
    removed: Vec<ComingTick>,
    moved: Vec<Moved>,
    /// All of them, also those that are not shown.
    totals: Totals,
    /// Whether there are more ticks than are compared.
    cut_short: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Change {
    Added,
    Removed,
    Changed,
}

#[derive(Debug, Serialize)]
struct Moved {
    from: ComingTick,
    to: ComingTick,
}

#[derive(Debug, Serialize)]
struct Totals {
    added: usize,
    removed: usize,
    moved: usize,
}

pub(super) fn show(
    output: Output,
    running: &ScheduleFile,
    schedule: &ScheduleFile,
    only: Option<&JobName>,
    span: Span,
) -> Result<(), CommandError> {
    let by_name = |file: &'_ ScheduleFile| -> BTreeMap<JobName, JobDefinition> {
        let jobs = file.jobs.iter().filter(|job| only.is_none_or(|only| *only == job.name));
        jobs.map(|job| (job.name.clone(), job.clone())).collect()
    };
    let (old, new) = (by_name(running), by_name(schedule));
    let names: BTreeSet<&JobName> = old.keys().chain(new.keys()).collect();
    let mut jobs = Vec::new();
    let mut unchanged_jobs = 0;
    for name in names {
        match (old.get(name), new.get(name)) {
            (Some(was), Some(is)) if was == is => unchanged_jobs += 1,
            (was, is) => jobs.push(edited(name, was, is, span)?),
        }
    }
    let edit = Edit {
        after: span.after,
        until: span.until,
        running_fingerprint: running.fingerprint(),
        schedule_fingerprint: schedule.fingerprint(),
        fires_at_once: false,
        unchanged_jobs,
        jobs,
    };
    if output.is_json() { output.json(&edit) } else { as_text(output, &edit) }
}

fn edited(
    name: &JobName,
    was: Option<&JobDefinition>,
    is: Option<&JobDefinition>,
    span: Span,
) -> Result<EditedJob, CommandError> {
    let (old, new) = (was.map(schedule_of).transpose()?, is.map(schedule_of).transpose()?);
    let changes = compare(old.as_ref(), new.as_ref(), span.after, span.until);
    let coming = |schedule: Option<&Schedule>, ticks: &[Tick]| -> Vec<ComingTick> {
        let of = |schedule| ticks.iter().take(span.shown).map(|tick| ComingTick::of(schedule, tick)).collect();
        schedule.map(of).unwrap_or_default()
    };
    let moved = match (&old, &new) {
        (Some(old), Some(new)) => {
            let pair = |(was, is): &(Tick, Tick)| Moved { from: ComingTick::of(old, was), to: ComingTick::of(new, is) };
            changes.moved.iter().take(span.shown).map(pair).collect()
        }
        (Some(_) | None, _) => Vec::new(),
    };
    Ok(EditedJob {
        job: name.to_string(),
        change: match (was, is) {
            (None, _) => Change::Added,
            (Some(_), None) => Change::Removed,
            (Some(_), Some(_)) => Change::Changed,
        },
        settings: settings(was, is),
        added: coming(new.as_ref(), &changes.added),
        removed: coming(old.as_ref(), &changes.removed),
        moved,
        totals: Totals { added: changes.added.len(), removed: changes.removed.len(), moved: changes.moved.len() },
        cut_short: changes.cut_short,
    })
}

/// The settings of a job that stays, whose values differ.
fn settings(was: Option<&JobDefinition>, is: Option<&JobDefinition>) -> Vec<String> {
    let (Some(was), Some(is)) = (was, is) else { return Vec::new() };
    let mut found = Vec::new();
    // What cannot be written down does not differ in it.
    let value = |job: &JobDefinition| serde_json::to_value(job).unwrap_or_default();
    differing(&value(was), &value(is), "", &mut found);
    found.truncate(SETTINGS_SHOWN);
    found
}

fn differing(was: &Value, is: &Value, path: &str, found: &mut Vec<String>) {
    match (was, is) {
        (Value::Object(was), Value::Object(is)) => {
            let keys: BTreeSet<&String> = was.keys().chain(is.keys()).collect();
            for key in keys {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                differing(was.get(key).unwrap_or(&Value::Null), is.get(key).unwrap_or(&Value::Null), &path, found);
            }
        }
        (was, is) if was != is => found.push(path.to_owned()),
        _ => {}
    }
}

fn as_text(output: Output, edit: &Edit) -> Result<(), CommandError> {
    output.line(&format!(
        "schedule {} against the running {}: ticks due after {} and up to {}",
        short(&edit.schedule_fingerprint),
        short(&edit.running_fingerprint),
        time(edit.after),
        time(edit.until)
    ))?;
    let mut columns = vec!["edit"];
    columns.extend(COLUMNS);
    for job in &edit.jobs {
        let change = match job.change {
            Change::Added => "is new and starts from when it is taken over".to_owned(),
            Change::Removed => "is removed; its runs are kept, and open ones go on".to_owned(),
            Change::Changed => format!("changes in {}", job.settings.join(", ")),
        };
        let mut rows = Vec::new();
        let mut add = |what: &str, tick: &ComingTick| {
            let mut row = vec![what.to_owned()];
            row.extend(tick.row());
            rows.push(row);
        };
        job.removed.iter().for_each(|tick| add("removed", tick));
        job.added.iter().for_each(|tick| add("added", tick));
        for moved in &job.moved {
            add("moved from", &moved.from);
            add("moved to", &moved.to);
        }
        output.table(&format!("\n{} {change}", job.job), "its ticks in these days are as they are", &columns, &rows)?;
        let Totals { added, removed, moved } = job.totals;
        let more = if job.cut_short { "; there are more than are compared" } else { "" };
        output.line(&format!("in all: {added} added, {removed} removed, {moved} moved{more}"))?;
    }
    output.line(&format!("\n{} jobs change, {} stay as they are. {AT_ONCE}", edit.jobs.len(), edit.unchanged_jobs))
}

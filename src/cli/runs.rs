//! `bursar runs`: what became of ticks.

use clap::{Args, Subcommand};

use super::context::Context;
use super::error::{CommandError, Exit};
use super::output::{Output, dash, or_dash, short, sums, time, time_or};
use crate::domain::JobName;
use crate::domain::run::RunState;
use crate::store::{RunFilter, RunSummary, RunView, Store};

#[derive(Debug, Subcommand)]
pub(super) enum RunsCommand {
    /// Runs, newest due first.
    List(ListArgs),
    /// One run with its units by state, its batches and what it pays out.
    Show(ShowArgs),
}

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// Only of this job.
    #[arg(long, value_name = "NAME")]
    job: Option<JobName>,
    /// Only in this state.
    #[arg(long, value_name = "STATE", value_parser = state)]
    state: Option<RunState>,
    /// Only with an id below this one: the next page.
    #[arg(long, value_name = "RUN")]
    below: Option<i64>,
    /// At most so many.
    #[arg(long, default_value_t = 50, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
}

#[derive(Debug, Args)]
pub(super) struct ShowArgs {
    /// The run's id.
    run: i64,
}

fn state(text: &str) -> Result<RunState, String> {
    RunState::parse(text).ok_or_else(|| {
        let all: Vec<&str> = RunState::ALL.into_iter().map(RunState::as_str).collect();
        format!("expected one of {}", all.join(", "))
    })
}

impl RunsCommand {
    pub(super) async fn execute(self, context: &Context) -> Result<Exit, CommandError> {
        let (_, store) = context.open().await?;
        let output = context.output();
        match self {
            Self::List(args) => {
                let filter = RunFilter { job: args.job, state: args.state, below: args.below, limit: args.limit };
                let runs = store.runs(&filter).await?;
                if output.is_json() { output.json(&runs)? } else { list(output, "", &runs)? }
            }
            Self::Show(args) => tell(output, &find(store.as_ref(), args.run).await?)?,
        }
        store.close().await;
        Ok(Exit::Done)
    }
}

/// A run's way through its units.
pub(super) fn progress(run: &RunSummary) -> String {
    if run.units.total == 0 {
        return dash();
    }
    let ended = run.units.total - run.units.pending.min(run.units.total);
    let aside = if run.units.set_aside > 0 { format!(", {} set aside", run.units.set_aside) } else { String::new() };
    format!("{ended}/{}{aside}", run.units.total)
}

/// A table of runs.
pub(super) fn list(output: Output, heading: &str, runs: &[RunSummary]) -> Result<(), CommandError> {
    let row = |run: &RunSummary| {
        let overdue = if run.overdue { " OVERDUE" } else { "" };
        vec![
            run.id.to_string(),
            run.job.to_string(),
            run.kind.as_str().to_owned(),
            time(run.tick),
            format!("{}{overdue}", run.state.as_str()),
            progress(run),
            time_or(run.finished_at),
            or_dash(run.why.as_deref()),
        ]
    };
    let rows: Vec<Vec<String>> = runs.iter().map(row).collect();
    output.table(heading, "no runs", &["run", "job", "kind", "tick", "state", "units", "ended", "why"], &rows)
}

/// One run.
pub(super) async fn find(store: &dyn Store, id: i64) -> Result<RunView, CommandError> {
    let run = store.run_by_id(id).await?;
    run.ok_or_else(|| CommandError::Refused(format!("there is no run {id}; see `bursar runs list`")))
}

/// The same, in either form.
pub(super) fn tell(output: Output, run: &RunView) -> Result<(), CommandError> {
    if output.is_json() { output.json(run) } else { output.line(&describe(run)) }
}

fn describe(run: &RunView) -> String {
    let summary = &run.summary;
    let units = summary.units;
    let batches: Vec<String> = run.batches.iter().map(|(term, count)| format!("{count} under term {term}")).collect();
    let lines = [
        ("run", summary.id.to_string()),
        ("job", format!("{} (election {}, {})", summary.job, summary.election, summary.kind.as_str())),
        ("state", format!("{}{}", summary.state.as_str(), if summary.overdue { ", OVERDUE" } else { "" })),
        ("why", or_dash(summary.why.as_deref())),
        ("tick", time(summary.tick)),
        ("due", time(summary.due_at)),
        ("cutoff", time(run.cutoff_at)),
        ("value date", run.value_date.to_string()),
        (
            "opened",
            format!(
                "{} under term {}, {} ms after it was due",
                time(summary.opened_at),
                summary.opened_term,
                summary.lateness_ms
            ),
        ),
        ("ended", time_or(summary.finished_at)),
        (
            "units",
            format!(
                "{} (pending {}, settled {}, carried {}, empty {}, set aside {})",
                units.total, units.pending, units.settled, units.carried, units.empty, units.set_aside
            ),
        ),
        ("batches", if batches.is_empty() { dash() } else { batches.join(", ") }),
        ("pays out", sums(&run.paid_out)),
        ("leaders lost", run.deaths.to_string()),
        ("definition", short(&run.fingerprint)),
        ("calendar", run.calendar_fingerprint.as_deref().map_or_else(dash, short)),
        ("request", run.request_id.map_or_else(dash, |id| id.to_string())),
    ];
    let lines: Vec<String> = lines.iter().map(|(what, text)| format!("{what:<13}{text}")).collect();
    lines.join("\n")
}

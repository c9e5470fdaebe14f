//! `bursar backfill`: runs for ticks of the past, each with its own tick and cutoff.

use chrono::{DateTime, Utc};
use clap::Args;
use serde::Serialize;

use super::coming::{COLUMNS, ComingTick};
use super::context::Context;
use super::dry_run::{self, Settled};
use super::error::{CommandError, Exit};
use super::halt::reason;
use super::pause::job_in_store;
use super::request;
use crate::domain::JobName;
use crate::schedule::{Schedule, backfilled};
use crate::store::{RequestKind, Store};

/// Have the leader open a run for each tick of a job that fell due in a span
///
/// Files a request, waits until the leader has executed it, and shows the runs: one for each
/// tick that fell due from --from to --to (both included), with that tick's own cutoff and
/// value date, by the definition in force. They are manual runs: they stand in no scheduled
/// tick's way, and an entry that is settled already is settled by no other run. They are worked
/// on one after the other, the oldest first. Neither end may lie in the future of the store's
/// clock, and one more than 400 days before it needs --force; at most 500 ticks at a time. A
/// request that no leader has taken within --wait is withdrawn: exit code 75, and nothing will
/// happen.
///
/// With --dry-run nothing is filed: the ticks are shown, and of a ledger job what each would
/// settle now.
///
/// Example: bursar backfill daily-payouts --from 2027-01-04T00:00:00Z --to 2027-01-08T23:59:59Z --reason 'paused last week'
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct BackfillArgs {
    /// The job.
    job: JobName,
    /// The first due time, RFC 3339.
    #[arg(long, value_name = "TIME", value_parser = request::instant)]
    from: DateTime<Utc>,
    /// The last due time, RFC 3339.
    #[arg(long, value_name = "TIME", value_parser = request::instant)]
    to: DateTime<Utc>,
    /// Show what would be settled, and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// Why; kept with the act.
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: Option<String>,
    /// Also what lies more than 400 days back.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    waiting: request::Waiting,
}

#[derive(Debug, Serialize)]
struct Preview {
    job: JobName,
    changes_nothing: bool,
    ticks: Vec<PreviewedTick>,
}

#[derive(Debug, Serialize)]
struct PreviewedTick {
    #[serde(flatten)]
    tick: ComingTick,
    /// Of a ledger job: by currency.
    settles: Option<Vec<Settled>>,
}

impl BackfillArgs {
    pub(super) async fn execute(self, context: &Context) -> Result<Exit, CommandError> {
        let (_, store) = context.open().await?;
        let exit = if self.dry_run {
            self.preview(context, store.as_ref()).await
        } else {
            request::near("time of --from", self.from, store.now().await?, self.force)?;
            let kind = RequestKind::Backfill { job: self.job, from: self.from, to: self.to };
            request::ask(context.output(), store.as_ref(), &kind, self.reason.as_deref(), self.waiting).await
        };
        store.close().await;
        exit
    }

    async fn preview(&self, context: &Context, store: &dyn Store) -> Result<Exit, CommandError> {
        let job = job_in_store(store, &self.job).await?;
        let schedule = Schedule::new(&job.definition.timing)
            .map_err(|error| CommandError::Unfit(format!("{}: {error}", self.job)))?;
        let ticks = backfilled(&schedule, job.now, self.from, self.to)
            .map_err(|why| CommandError::Refused(format!("{}: {why}", self.job)))?;
        let cutoffs: Vec<DateTime<Utc>> = ticks.iter().map(|tick| schedule.cutoff_at(tick.due_at)).collect();
        let mut settles = dry_run::settles(store, &job.definition, &cutoffs).await?.map(Vec::into_iter);
        let ticks = ticks.iter().map(|tick| PreviewedTick {
            tick: ComingTick::of(&schedule, tick),
            settles: settles.as_mut().map(|settles| settles.next().unwrap_or_default()),
        });
        let preview = Preview { job: self.job.clone(), changes_nothing: true, ticks: ticks.collect() };
        let output = context.output();
        if output.is_json() {
            output.json(&preview)?;
            return Ok(Exit::Done);
        }
        let mut columns: Vec<&str> = COLUMNS.to_vec();
        columns.push("would settle");
        let row = |tick: &PreviewedTick| {
            let mut row = tick.tick.row();
            row.push(dry_run::words(tick.settles.as_deref()));
            row
        };
        let rows: Vec<Vec<String>> = preview.ticks.iter().map(row).collect();
        output.table(&format!("{} runs would be opened; nothing is changed", rows.len()), "none", &columns, &rows)?;
        Ok(Exit::Done)
    }
}

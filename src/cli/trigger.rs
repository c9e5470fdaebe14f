//! `bursar trigger`: a run now, beside the schedule.

use chrono::{DateTime, Utc};
use clap::Args;
use serde_json::json;

use super::context::Context;
use super::dry_run;
use super::error::{CommandError, Exit};
use super::halt::reason;
use super::output::time;
use super::pause::{StoredJob, job_in_store};
use super::request;
use crate::domain::JobName;
use crate::store::{RequestKind, Store};

/// Have the leader open a run of a job now, beside its schedule
///
/// Files a request, waits until the leader has executed it, and shows the run. A manual run
/// does not stand in a scheduled tick's way: that one runs all the same. Without --tick and
/// --cutoff both are the store's time at which the leader executes the request; neither may lie
/// after it, and a tick more than 400 days before it needs --force. A request that no leader
/// has taken within --wait is withdrawn: exit code 75, and nothing will happen. With --dry-run
/// nothing is filed, and what a run of a ledger job would settle now is shown.
///
/// Example: bursar trigger daily-payouts --cutoff 2027-01-04T17:00:00Z --reason 'late file of source adyen'
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct TriggerArgs {
    /// The job.
    job: JobName,
    /// The run's nominal time, RFC 3339.
    #[arg(long, value_name = "TIME", value_parser = request::tick)]
    tick: Option<DateTime<Utc>>,
    /// Entries available before it are in, RFC 3339.
    #[arg(long, value_name = "TIME", value_parser = request::instant)]
    cutoff: Option<DateTime<Utc>>,
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

impl TriggerArgs {
    pub(super) async fn execute(self, context: &Context) -> Result<Exit, CommandError> {
        let (_, store) = context.open().await?;
        if self.dry_run {
            let shown = self.preview(context, store.as_ref()).await;
            store.close().await;
            return shown;
        }
        if let Some(tick) = self.tick {
            request::near("tick", tick, store.now().await?, self.force)?;
        }
        let kind = RequestKind::Trigger { job: self.job, tick: self.tick, cutoff: self.cutoff };
        let exit = request::ask(context.output(), store.as_ref(), &kind, self.reason.as_deref(), self.waiting).await;
        store.close().await;
        exit
    }

    /// What the run would take of what is open now.
    async fn preview(&self, context: &Context, store: &dyn Store) -> Result<Exit, CommandError> {
        let StoredJob { definition, now } = job_in_store(store, &self.job).await?;
        for (what, given) in [("tick", self.tick), ("cutoff", self.cutoff)] {
            if let Some(at) = given.filter(|at| *at > now) {
                return Err(CommandError::Refused(format!("the {what} {at} lies after the store's time {now}")));
            }
        }
        let (tick, cutoff) = (self.tick.unwrap_or(now), self.cutoff.unwrap_or(now));
        let settles = dry_run::settles(store, &definition, &[cutoff]).await?.and_then(|mut each| each.pop());
        if context.output().is_json() {
            context.output().json(&json!({
                "job": self.job, "changes_nothing": true, "tick": tick, "cutoff_at": cutoff, "settles": settles,
            }))?;
        } else {
            let words = dry_run::words(settles.as_deref());
            let (tick, cutoff) = (time(tick), time(cutoff));
            context
                .output()
                .line(&format!("a run of {} for {tick}, cutoff {cutoff}, would settle: {words}", self.job))?;
            context.output().line("nothing is changed")?;
        }
        Ok(Exit::Done)
    }
}

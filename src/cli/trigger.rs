//! `bursar trigger`: a run now, beside the schedule.

use std::time::Duration;

use chrono::{DateTime, Utc};
use clap::Args;

use super::context::Context;
use super::error::{CommandError, Exit};
use super::halt::reason;
use super::request;
use crate::domain::JobName;
use crate::store::RequestKind;

/// Have the leader open a run of a job now, beside its schedule.
///
/// Files a request, waits until the leader has executed it, and shows the run. A manual run does not stand in a scheduled
/// tick's way: that one runs all the same. Without --tick and --cutoff both are the store's time at which the leader
/// executes the request; neither may lie after it.
///
/// Example: bursar trigger daily-payouts --cutoff 2027-01-04T17:00:00Z --reason 'late file of source adyen'
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct TriggerArgs {
    /// The job.
    job: JobName,
    /// The run's nominal time, RFC 3339.
    #[arg(long, value_name = "TIME", value_parser = request::instant)]
    tick: Option<DateTime<Utc>>,
    /// Entries available before it are in, RFC 3339.
    #[arg(long, value_name = "TIME", value_parser = request::instant)]
    cutoff: Option<DateTime<Utc>>,
    /// Why; kept with the act.
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: Option<String>,
    /// How long to wait for the leader.
    #[arg(long, default_value = "30s", value_name = "TIME", value_parser = request::wait)]
    wait: Duration,
}

impl TriggerArgs {
    pub(super) async fn execute(self, context: &Context) -> Result<Exit, CommandError> {
        let (_, store) = context.open().await?;
        let kind = RequestKind::Trigger { job: self.job, tick: self.tick, cutoff: self.cutoff };
        let exit = request::ask(context.output(), store.as_ref(), &kind, self.reason.as_deref(), self.wait).await;
        store.close().await;
        exit
    }
}

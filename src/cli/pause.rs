//! `bursar pause` and `bursar unpause`: one job, lastingly, with a reason.

use chrono::{DateTime, Utc};
use clap::Args;
use serde_json::json;

use super::context::Context;
use super::error::{CommandError, Exit};
use super::halt::reason;
use super::operator::actor;
use super::output::time;
use crate::domain::JobName;
use crate::domain::job::JobDefinition;
use crate::store::{PauseOutcome, Store};

/// The most names that are shown where a job is not there.
const NAMES_SHOWN: usize = 20;

/// Pause a job, lastingly: its ticks are recorded as skipped, its open runs go on
///
/// In force with the next transaction, through restarts, takeovers and edits of the job, until
/// `bursar unpause`. Ticks are evaluated as ever, so that each is on record, as skipped and
/// with the reason; so are those that have no outcome yet. `bursar trigger` opens a run all the
/// same.
///
/// Example: bursar pause daily-payouts --reason 'fees of source adyen are looked into'
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct PauseArgs {
    /// The job.
    job: JobName,
    /// Why; kept with the act, shown in `status` and with each tick that is skipped.
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: String,
}

/// End a job's pause
///
/// Ticks that fell due in it are not caught up, also where nobody led meanwhile. Use `bursar
/// backfill` or `bursar trigger` for what is wanted after all.
///
/// Example: bursar unpause daily-payouts --reason 'fees were right'
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct UnpauseArgs {
    /// The job.
    job: JobName,
    /// Why; kept with the act.
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: String,
}

impl PauseArgs {
    pub(super) async fn execute(self, context: &Context) -> Result<Exit, CommandError> {
        let (_, store) = context.open().await?;
        let outcome = store.pause_job(&self.job, &self.reason, &actor()).await;
        let said = match outcome {
            Ok(outcome) => say(context, &*store, &self.job, true, &outcome).await,
            Err(error) => Err(error.into()),
        };
        store.close().await;
        said
    }
}

impl UnpauseArgs {
    pub(super) async fn execute(self, context: &Context) -> Result<Exit, CommandError> {
        let (_, store) = context.open().await?;
        let outcome = store.unpause_job(&self.job, &self.reason, &actor()).await;
        let said = match outcome {
            Ok(outcome) => say(context, &*store, &self.job, false, &outcome).await,
            Err(error) => Err(error.into()),
        };
        store.close().await;
        said
    }
}

async fn say(
    context: &Context,
    store: &dyn Store,
    job: &JobName,
    paused: bool,
    outcome: &PauseOutcome,
) -> Result<Exit, CommandError> {
    let (already, pause) = match outcome {
        PauseOutcome::Done => (false, None),
        PauseOutcome::Already { pause } => (true, pause.as_ref()),
        PauseOutcome::NotFound => return Err(unknown(store, job).await),
    };
    let output = context.output().done();
    if output.is_json() {
        output.json(&json!({ "job": job, "paused": paused, "already": already, "pause": pause }))?;
        return Ok(Exit::Done);
    }
    output.line(&match (paused, already, pause) {
        (true, false, _) => format!("{job} is paused: its ticks are recorded as skipped until `bursar unpause {job}`"),
        (true, true, Some(pause)) => {
            format!("{job} was paused already, since {}: {}; nothing changed", time(pause.since), pause.reason)
        }
        (true, true, None) => format!("{job} was paused already; nothing changed"),
        (false, false, _) => format!("{job} is paused no more: the next tick runs"),
        (false, true, _) => format!("{job} was not paused; nothing changed"),
    })?;
    Ok(Exit::Done)
}

/// A job of the store, by the definition in force, and the store's time.
pub(super) struct StoredJob {
    pub(super) definition: JobDefinition,
    pub(super) now: DateTime<Utc>,
}

/// Looks a job up in the store.
pub(super) async fn job_in_store(store: &dyn Store, job: &JobName) -> Result<StoredJob, CommandError> {
    let status = store.status().await?;
    let Some(found) = status.jobs.iter().find(|found| found.job == *job) else {
        return Err(unknown(store, job).await);
    };
    let definition = serde_json::from_value(found.definition.clone())
        .map_err(|error| CommandError::Unfit(format!("{job}: this release cannot read its definition: {error}")))?;
    Ok(StoredJob { definition, now: status.now })
}

/// A job that is not there, with those that are.
async fn unknown(store: &dyn Store, job: &JobName) -> CommandError {
    match store.status().await {
        Ok(status) => {
            let names: Vec<&str> = status.jobs.iter().take(NAMES_SHOWN).map(|found| found.job.as_str()).collect();
            let names = if names.is_empty() { "none yet".to_owned() } else { names.join(", ") };
            CommandError::Refused(format!("there is no job {job} in the store; there are: {names}"))
        }
        Err(error) => error.into(),
    }
}

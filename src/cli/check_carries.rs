//! What `check` asks the store: whether jobs that are not in the schedule, or are no ledgers in it, have open carries, which
//! nobody else takes.

use std::time::Duration;

use serde::Serialize;

use crate::app;
use crate::config::Config;
use crate::domain::job::{HandlerDefinition, JobDefinition};
use crate::store::{JobCarries, StoreError};

/// How long the store is waited for.
const REACH_WITHIN: Duration = Duration::from_secs(5);

/// What became of the question.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Carries {
    /// Jobs with open carries that are not in the schedule, or are no ledgers in it.
    Asked { of_jobs_that_are_gone: Vec<JobCarries> },
    /// The store was not asked.
    LeftOut { left_out: String },
}

/// Asks the store; a warning for each job.
pub(super) async fn ask(config: &Config, jobs: &[JobDefinition], warnings: &mut Vec<String>) -> Carries {
    let left_out = |why: String| Carries::LeftOut { left_out: why };
    let store = match app::store_for_command(config) {
        Ok(store) => store,
        Err(error) => return left_out(error.to_string()),
    };
    let asking = async {
        store.health().await?;
        store.carries().await
    };
    let asked: Result<Result<_, StoreError>, _> = tokio::time::timeout(REACH_WITHIN, asking).await;
    store.close().await;
    let mut carries = match asked {
        Err(_elapsed) => return left_out(format!("the store gave no answer within {REACH_WITHIN:?}")),
        Ok(Err(error)) => return left_out(error.to_string()),
        Ok(Ok(carries)) => carries,
    };
    let takes_them = |job: &JobDefinition, carry: &JobCarries| {
        job.name == carry.job && matches!(job.handler, HandlerDefinition::Ledger(_))
    };
    carries.retain(|carry| !jobs.iter().any(|job| takes_them(job, carry)));
    for JobCarries { job, entries, .. } in &carries {
        let is_there = jobs.iter().any(|found| found.name == *job);
        let what = if is_there { "settles no ledger any more" } else { "is not in the schedule" };
        warnings
            .push(format!("{job} {what} and has {entries} open carries: no other job takes them, whatever it selects"));
    }
    Carries::Asked { of_jobs_that_are_gone: carries }
}

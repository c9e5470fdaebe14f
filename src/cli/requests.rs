//! `bursar requests`: what was asked of a leader and not taken yet, and taking it back.

use clap::{Args, Subcommand};
use uuid::Uuid;

use super::context::Context;
use super::error::{CommandError, Exit};
use super::halt::reason;
use super::operator::actor;
use super::output::{Output, or_dash, time};
use crate::store::{RequestState, Store, WaitingRequest, WithdrawOutcome};

#[derive(Debug, Subcommand)]
pub(super) enum RequestsCommand {
    /// Requests that no leader has taken yet, oldest first, at most 1000.
    List,
    Withdraw(WithdrawArgs),
}

/// Take a request back that still waits: no leader executes it
///
/// It is either withdrawn or executed, never both; one that was executed already is refused
/// here, with its run.
///
/// Example: bursar requests withdraw 0b6f4a1e-93d2-4c57-8a0e-5d1f6e7c8b90 --reason 'asked for twice'
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct WithdrawArgs {
    /// The request's id, as listed.
    id: Uuid,
    /// Why; kept with the act.
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: String,
}

impl RequestsCommand {
    pub(super) async fn execute(self, context: &Context) -> Result<Exit, CommandError> {
        let (_, store) = context.open().await?;
        let output = context.output();
        let exit = match self {
            Self::List => list(output, store.as_ref()).await,
            Self::Withdraw(args) => withdraw(output, store.as_ref(), &args).await,
        };
        store.close().await;
        exit
    }
}

async fn list(output: Output, store: &dyn Store) -> Result<Exit, CommandError> {
    let waiting = store.waiting_requests().await?;
    if output.is_json() {
        output.json(&waiting)?;
    } else {
        table(output, "", &waiting)?;
    }
    Ok(Exit::Done)
}

/// Requests as a table, for `status` too.
pub(super) fn table(output: Output, heading: &str, waiting: &[WaitingRequest]) -> Result<(), CommandError> {
    let row = |request: &WaitingRequest| {
        vec![
            request.id.to_string(),
            request.election.to_string(),
            format!("{} {}", request.action, request.target),
            time(request.at),
            request.by.clone(),
            or_dash(request.reason.as_deref()),
        ]
    };
    let rows: Vec<Vec<String>> = waiting.iter().map(row).collect();
    output.table(heading, "no request waits", &["request", "election", "asks for", "since", "by", "why"], &rows)
}

async fn withdraw(output: Output, store: &dyn Store, args: &WithdrawArgs) -> Result<Exit, CommandError> {
    let id = args.id;
    let refused = |why: String| Err(CommandError::Refused(format!("request {id} {why}; nothing was changed")));
    match store.withdraw_request(id, &args.reason, &actor()).await? {
        WithdrawOutcome::Withdrawn => {}
        WithdrawOutcome::NotFound => return refused("does not exist; see `bursar requests list`".to_owned()),
        WithdrawOutcome::Answered(RequestState::Done { run, .. }) => {
            return refused(format!("was executed: run {run}"));
        }
        WithdrawOutcome::Answered(RequestState::Opened { runs }) => {
            let runs: Vec<String> = runs.iter().map(i64::to_string).collect();
            return refused(format!("was executed: runs {}", runs.join(", ")));
        }
        WithdrawOutcome::Answered(RequestState::Refused { why }) => return refused(format!("was refused: {why}")),
        // Withdrawing and looking are one transaction: what waits is withdrawn.
        WithdrawOutcome::Answered(RequestState::Waiting) => return refused("still waits; ask again".to_owned()),
    }
    let output = output.done();
    if output.is_json() {
        output.json(&serde_json::json!({ "request": id, "withdrawn": true }))?;
    } else {
        output.line(&format!("request {id} is withdrawn: nothing will happen"))?;
    }
    Ok(Exit::Done)
}

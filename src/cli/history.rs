//! `bursar history`: who led and why it ended, who was refused, who did what.

use clap::Args;

use super::context::Context;
use super::error::{CommandError, Exit};
use super::output::{dash, or_dash, time, time_or};
use crate::store::{ActView, FenceReject, HistoryView, TermView};

/// Terms and why each ended, fencing rejects, operators' acts.
#[derive(Debug, Args)]
pub(super) struct HistoryArgs {
    /// At most so many of each, newest first.
    #[arg(long, default_value_t = 20, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
}

impl HistoryArgs {
    pub(super) async fn execute(self, context: &Context) -> Result<Exit, CommandError> {
        let (_, store) = context.open().await?;
        let history = store.history(self.limit).await?;
        store.close().await;
        if context.output().is_json() {
            context.output().json(&history)?;
        } else {
            show(context, &history)?;
        }
        Ok(Exit::Done)
    }
}

fn show(context: &Context, history: &HistoryView) -> Result<(), CommandError> {
    let term = |term: &TermView| {
        vec![
            term.election.to_string(),
            term.term.to_string(),
            term.replica.clone(),
            time(term.accepted_at),
            time_or(term.worked_at),
            time_or(term.ended_at),
            or_dash(term.end_reason.as_deref()),
        ]
    };
    let rows: Vec<Vec<String>> = history.terms.iter().map(term).collect();
    let columns = ["election", "term", "replica", "accepted", "first work", "ended", "why"];
    context.output().table("TERMS", "none", &columns, &rows)?;
    let reject = |reject: &FenceReject| {
        let found = reject.found.map_or_else(dash, |found| found.term.to_string());
        vec![
            time(reject.at),
            reject.presented.election.to_string(),
            reject.presented.term.to_string(),
            found,
            reject.operation.clone(),
            reject.replica.clone(),
        ]
    };
    let rows: Vec<Vec<String>> = history.rejects.iter().map(reject).collect();
    let columns = ["at", "election", "presented", "in force", "operation", "replica"];
    context.output().table("\nFENCING REJECTS", "none", &columns, &rows)?;
    let act = |act: &ActView| {
        vec![
            time(act.at),
            act.action.clone(),
            act.target.clone(),
            act.by.clone(),
            act.role.clone(),
            or_dash(act.reason.as_deref()),
        ]
    };
    let rows: Vec<Vec<String>> = history.acts.iter().map(act).collect();
    context.output().table("\nOPERATORS' ACTS", "none", &["at", "what", "on", "by", "role", "why"], &rows)
}

//! `bursar units`: what a run is split into, and another try at what was set aside.

use std::collections::BTreeSet;
use std::time::Duration;

use clap::{Args, Subcommand};

use super::context::Context;
use super::error::{CommandError, Exit};
use super::halt::reason;
use super::output::{Output, or_dash, time_or};
use super::request;
use super::unit_history;
use crate::domain::unit::UnitState;
use crate::store::{RequestKind, Store, UnitFilter, UnitView};

#[derive(Debug, Subcommand)]
pub(super) enum UnitsCommand {
    /// Units, in the order in which they were planned.
    List(ListArgs),
    /// One unit of a run with its whole history.
    Show(ShowArgs),
    /// Have the leader try units again that were set aside; their run is reopened.
    Retry(RetryArgs),
}

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// Only of this run.
    #[arg(long, value_name = "RUN")]
    run: Option<i64>,
    /// Only in this state.
    #[arg(long, value_name = "STATE", value_parser = state)]
    state: Option<UnitState>,
    /// Only with this key.
    #[arg(long, value_name = "KEY")]
    key: Option<String>,
    /// Only with an id above this one: the next page.
    #[arg(long, value_name = "UNIT")]
    above: Option<i64>,
    /// At most so many.
    #[arg(long, default_value_t = 100, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
}

/// One unit of a run with its whole history.
///
/// What it bound, the lines that were posted, its requests with what is kept of their tries (how many, the first and the last,
/// the last error and status, whether one was ever in doubt), and what operators did about it. There is no row for each try:
/// the log of the leader of the time has them.
///
/// Example: bursar units show 42 EUR:merchant-17
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct ShowArgs {
    /// The run's id.
    run: i64,
    /// The unit's key, for example EUR:merchant-17.
    key: String,
}

/// Have the leader try units again that were set aside; their run is reopened.
///
/// Example: bursar units retry 42 EUR:merchant-17 GBP:merchant-3 --reason 'bank account corrected'
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct RetryArgs {
    /// The run's id.
    run: i64,
    /// The units' keys.
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    keys: Vec<String>,
    /// All units of the run that are set aside.
    #[arg(long)]
    all: bool,
    /// Why; kept with the act.
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: Option<String>,
    /// How long to wait for the leader.
    #[arg(long, default_value = "30s", value_name = "TIME", value_parser = request::wait)]
    wait: Duration,
}

fn state(text: &str) -> Result<UnitState, String> {
    UnitState::parse(text).ok_or_else(|| {
        let all: Vec<&str> = UnitState::ALL.into_iter().map(UnitState::as_str).collect();
        format!("expected one of {}", all.join(", "))
    })
}

impl UnitsCommand {
    pub(super) async fn execute(self, context: &Context) -> Result<Exit, CommandError> {
        let (_, store) = context.open().await?;
        let output = context.output();
        let exit = match self {
            Self::List(args) => list(output, store.as_ref(), args).await,
            Self::Show(args) => show(output, store.as_ref(), args).await,
            Self::Retry(args) => {
                let kind = RequestKind::RetryUnits { run: args.run, keys: BTreeSet::from_iter(args.keys) };
                request::ask(output, store.as_ref(), &kind, args.reason.as_deref(), args.wait).await
            }
        };
        store.close().await;
        exit
    }
}

async fn list(output: Output, store: &dyn Store, args: ListArgs) -> Result<Exit, CommandError> {
    let filter = UnitFilter { run: args.run, state: args.state, key: args.key, above: args.above, limit: args.limit };
    let units = store.units(&filter).await?;
    if output.is_json() {
        output.json(&units)?;
        return Ok(Exit::Done);
    }
    let row = |unit: &UnitView| {
        vec![
            unit.id.to_string(),
            unit.run.to_string(),
            unit.key.clone(),
            unit.state.as_str().to_owned(),
            or_dash(unit.net.as_deref()),
            unit.attempts.to_string(),
            time_or(unit.ended_at),
            or_dash(unit.last_error.as_deref()),
        ]
    };
    let rows: Vec<Vec<String>> = units.iter().map(row).collect();
    let columns = ["unit", "run", "key", "state", "net", "attempts", "ended", "last error"];
    output.table("", "no units", &columns, &rows)?;
    Ok(Exit::Done)
}

async fn show(output: Output, store: &dyn Store, args: ShowArgs) -> Result<Exit, CommandError> {
    let Some(history) = store.unit_history(args.run, &args.key).await? else {
        let message =
            format!("run {} has no unit {:?}; see `bursar units list --run {}`", args.run, args.key, args.run);
        return Err(CommandError::Refused(message));
    };
    if output.is_json() {
        output.json(&history)?;
    } else {
        unit_history::show(output, &history)?;
    }
    Ok(Exit::Done)
}

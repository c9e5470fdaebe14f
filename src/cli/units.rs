//! `bursar units`: what a run is split into, and another try at what was set aside.

use std::collections::BTreeSet;

use clap::{Args, Subcommand};
use unicode_normalization::UnicodeNormalization as _;

use super::approve::waits;
use super::context::Context;
use super::error::{CommandError, Exit};
use super::halt::reason;
use super::operator::actor;
use super::output::{Output, or_dash, time_or};
use super::request;
use super::unit_history;
use crate::domain::unit::UnitState;
use crate::store::{CallWord, RequestKind, ResolveOutcome, Store, UnitFilter, UnitView};

#[derive(Debug, Subcommand)]
pub(super) enum UnitsCommand {
    /// Units, in the order in which they were planned.
    List(ListArgs),
    Show(ShowArgs),
    Retry(RetryArgs),
    Resolve(ResolveArgs),
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

/// One unit of a run with its whole history
///
/// What it bound, the lines that were posted, its requests, each try of them (when, under which
/// term, what came of it; tries from before they were kept have no row), and what operators did
/// about it.
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

/// Have the leader try units again that were set aside; their run is reopened
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
    #[command(flatten)]
    waiting: request::Waiting,
}

/// Say what came of a unit of an outside handler (http, command), where a person has found out
///
/// For a unit that is set aside: its call is held because nobody knows its outcome, or was
/// refused for good.
/// --done: it was carried out, under this reference. The unit is settled.
/// --not-done: it was not and will not be. The unit has come to nothing (empty): it is not
/// tried again, and its key is free for the next run of the job. Where its outcome is unknown
/// only once the receiver no longer knows the call's key, or with its word for it
/// (--bank-confirmed REF); of a program's, which has ended, always. To have it tried again in
/// this run instead: units retry.
///
/// Example: bursar units resolve 42 partner-7 --done NET-2027-01-04/3 --reason 'on their list of the 4th'
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct ResolveArgs {
    /// The run's id.
    run: i64,
    /// The unit's key.
    key: String,
    #[command(flatten)]
    word: Word,
    /// With --not-done: the receiver's own word for it.
    #[arg(long, value_name = "REF", requires = "not_done", value_parser = reason)]
    bank_confirmed: Option<String>,
    /// Why; kept with the act.
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: String,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Word {
    /// It was carried out, under this reference.
    #[arg(long, value_name = "REF", value_parser = reason)]
    done: Option<String>,
    /// It was not carried out and will not be.
    #[arg(long)]
    not_done: bool,
}

fn state(text: &str) -> Result<UnitState, String> {
    UnitState::parse(text).ok_or_else(|| {
        let all: Vec<&str> = UnitState::ALL.into_iter().map(UnitState::as_str).collect();
        format!("expected one of {}", all.join(", "))
    })
}

impl UnitsCommand {
    pub(super) async fn execute(self, context: &Context) -> Result<Exit, CommandError> {
        let store = match &self {
            Self::List(_) | Self::Show(_) | Self::Retry(_) => context.open().await?.1,
            Self::Resolve(_) => context.open_to_act().await?,
        };
        let output = context.output();
        let exit = match self {
            Self::List(args) => list(output, store.as_ref(), args).await,
            Self::Show(args) => show(output, store.as_ref(), args).await,
            Self::Retry(args) => retry(output, store.as_ref(), args).await,
            Self::Resolve(args) => resolve(output, store.as_ref(), args).await,
        };
        store.close().await;
        exit
    }
}

async fn retry(output: Output, store: &dyn Store, args: RetryArgs) -> Result<Exit, CommandError> {
    let mut strange = Vec::new();
    for key in &args.keys {
        let mut is_there = false;
        for written in [Some(key.clone()), composed(key)].into_iter().flatten() {
            let filter = UnitFilter {
                run: Some(args.run),
                state: Some(UnitState::SetAside),
                key: Some(written),
                above: None,
                limit: 1,
            };
            is_there |= !store.units(&filter).await?.is_empty();
        }
        if !is_there {
            strange.push(key.as_str());
        }
    }
    // The leader would take the others and say nothing of these.
    if !strange.is_empty() {
        let (run, keys) = (args.run, strange.join(", "));
        return Err(CommandError::Refused(format!(
            "no unit of run {run} with these keys is set aside: {keys}; nothing was changed"
        )));
    }
    let composed: Vec<String> = args.keys.iter().filter_map(|key| composed(key)).collect();
    let keys = args.keys.into_iter().chain(composed).collect::<BTreeSet<String>>();
    let kind = RequestKind::RetryUnits { run: args.run, keys };
    request::ask(output, store, &kind, args.reason.as_deref(), args.waiting).await
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
            or_dash(last_error(unit)),
        ]
    };
    let rows: Vec<Vec<String>> = units.iter().map(row).collect();
    let columns = ["unit", "run", "key", "state", "net", "attempts", "ended", "last error"];
    output.table("", "no units", &columns, &rows)?;
    Ok(Exit::Done)
}

/// The error that a unit waits or stands aside for; one that has ended otherwise got over it.
pub(super) fn last_error(unit: &UnitView) -> Option<&str> {
    match unit.state {
        UnitState::Pending | UnitState::SetAside => unit.last_error.as_deref(),
        UnitState::Settled | UnitState::Carried | UnitState::Empty => None,
    }
}

/// A key as ledger units have it: merchant ids are kept in NFC, and a keyboard may compose letters otherwise. `None` where it is
/// that already. Keys of queries are as the query says, so both are looked for.
fn composed(key: &str) -> Option<String> {
    let composed: String = key.nfc().collect();
    (composed != key).then_some(composed)
}

async fn show(output: Output, store: &dyn Store, args: ShowArgs) -> Result<Exit, CommandError> {
    let mut history = store.unit_history(args.run, &args.key).await?;
    if history.is_none()
        && let Some(key) = composed(&args.key)
    {
        history = store.unit_history(args.run, &key).await?;
    }
    let Some(history) = history else {
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

async fn resolve(output: Output, store: &dyn Store, args: ResolveArgs) -> Result<Exit, CommandError> {
    let word = match args.word.done {
        Some(reference) => CallWord::Done(reference),
        None => CallWord::NotDone { confirmed: args.bank_confirmed },
    };
    let outcome = store.resolve_call(args.run, &args.key, &word, &args.reason, &actor()).await?;
    let output = output.done();
    let unit = format!("unit {:?} of run {}", args.key, args.run);
    let text = match &outcome {
        ResolveOutcome::Resolved { was, now } => {
            format!("{unit} is {}; its call was {}, is {}", word.unit_becomes().as_str(), was.as_str(), now.as_str())
        }
        ResolveOutcome::Waits { request } => waits(*request),
        ResolveOutcome::NotFound => {
            let list = format!("see `bursar units list --run {}`", args.run);
            return Err(CommandError::Refused(format!("there is no {unit}; {list}")));
        }
        ResolveOutcome::Refused { state, why } => {
            let message = format!("the call of {unit} is {}, and nothing was changed: {why}", state.as_str());
            return Err(CommandError::Refused(message));
        }
    };
    if output.is_json() {
        output.json(&outcome)?;
    } else {
        output.line(&text)?;
    }
    Ok(Exit::Done)
}

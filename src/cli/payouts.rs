//! `bursar payouts`: what leaves the house, and a person's word where the system's ends.

use clap::{Args, Subcommand};
use serde::Serialize;

use super::approve::waits;
use super::context::Context;
use super::error::{CommandError, Exit};
use super::halt::{REASON_BYTES, reason};
use super::operator::actor;
use super::output::{Output, dash, or_dash, time, time_or};
use super::unit_history;
use crate::domain::entry::merchant_id;
use crate::domain::instruction::InstructionState;
use crate::store::{
    PayoutFilter, PayoutView, ReleaseOutcome, Resolution, ResolveOutcome, Store, UnitTry, nothing_waits,
};

#[derive(Debug, Subcommand)]
pub(super) enum PayoutsCommand {
    /// Payouts, in the order in which they were written.
    List(ListArgs),
    /// One payout with each of its tries.
    Show(ShowArgs),
    Release(ReleaseArgs),
    Resolve(ResolveArgs),
}

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// Only of this run.
    #[arg(long, value_name = "RUN")]
    run: Option<i64>,
    /// Only in this state.
    #[arg(long, value_name = "STATE", value_parser = state)]
    state: Option<InstructionState>,
    /// Only to this merchant.
    #[arg(long, value_name = "ID", value_parser = merchant)]
    merchant: Option<String>,
    /// Only with an id above this one: the next page.
    #[arg(long, value_name = "ID")]
    above: Option<i64>,
    /// At most so many.
    #[arg(long, default_value_t = 100, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
}

/// A payout with each of its tries.
#[derive(Serialize)]
struct Shown<'a> {
    #[serde(flatten)]
    payout: &'a PayoutView,
    tries: &'a [UnitTry],
}

#[derive(Debug, Args)]
pub(super) struct ShowArgs {
    /// The payout's key.
    key: String,
}

/// Let payouts of a run leave that wait for it (`release = "manual"`)
///
/// With keys only those: one that is named leaves also where it is held for its amount
/// (`over_limit`), or because it was written while the job left its payouts in the store
/// (approval): find out first that nobody took it from there. A key of which nothing waits is
/// named, and then nothing is released.
///
/// Example: bursar payouts release 42 --reason 'sums agreed with finance'
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct ReleaseArgs {
    /// The run's id.
    run: i64,
    /// Only these keys.
    keys: Vec<String>,
    /// Why; kept with the act.
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: String,
}

/// Say what came of a payout, where a person has found out
///
/// --paid: it was carried out, under this reference.
/// --not-paid: it was not, and its net comes back as a carry. Only where nothing was ever sent,
/// the receiver no longer knows the key, or the bank has confirmed it (--bank-confirmed REF).
/// --returned: it was paid, and the bank sent it back; its net comes back as a carry.
///
/// Example: bursar payouts resolve bq3f… --paid STMT-2027-01-04/17 --reason 'on the statement of the 4th'
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct ResolveArgs {
    /// The payout's key.
    key: String,
    #[command(flatten)]
    word: Word,
    /// With --not-paid: the bank's own word for it.
    #[arg(long, value_name = "REF", requires = "not_paid", value_parser = reference)]
    bank_confirmed: Option<String>,
    /// Why; kept with the act.
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: String,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Word {
    /// It was paid, under this reference.
    #[arg(long, value_name = "REF", value_parser = reference)]
    paid: Option<String>,
    /// It was not paid and will not be.
    #[arg(long)]
    not_paid: bool,
    /// The bank sent it back, under this reference.
    #[arg(long, value_name = "REF", value_parser = reference)]
    returned: Option<String>,
}

impl ResolveArgs {
    fn resolution(&self) -> Resolution {
        let Word { paid, returned, not_paid: _ } = &self.word;
        match (paid, returned) {
            (Some(reference), _) => Resolution::Paid(reference.clone()),
            (None, Some(reference)) => Resolution::Returned(reference.clone()),
            (None, None) => Resolution::NotPaid { bank_confirmed: self.bank_confirmed.clone() },
        }
    }
}

fn state(text: &str) -> Result<InstructionState, String> {
    InstructionState::parse(text).ok_or_else(|| {
        let all: Vec<&str> = InstructionState::ALL.into_iter().map(InstructionState::as_str).collect();
        format!("expected one of {}", all.join(", "))
    })
}

/// A reference of the bank's that says something.
fn reference(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("a reference is what the bank's own word is found by; it may not be empty".to_owned()),
        text if text.len() > REASON_BYTES => Err(format!("a reference has at most {REASON_BYTES} bytes")),
        text => Ok(text.to_owned()),
    }
}

pub(super) fn merchant(text: &str) -> Result<String, String> {
    merchant_id(text)
}

impl PayoutsCommand {
    pub(super) async fn execute(self, context: &Context) -> Result<Exit, CommandError> {
        let store = match &self {
            Self::List(_) | Self::Show(_) => context.open().await?.1,
            Self::Release(_) | Self::Resolve(_) => context.open_to_act().await?,
        };
        let output = context.output();
        let exit = match self {
            Self::List(args) => list(output, store.as_ref(), args).await,
            Self::Show(args) => show(output, store.as_ref(), args).await,
            Self::Release(args) => release(output, store.as_ref(), args).await,
            Self::Resolve(args) => resolve(output, store.as_ref(), args).await,
        };
        store.close().await;
        exit
    }
}

async fn list(output: Output, store: &dyn Store, args: ListArgs) -> Result<Exit, CommandError> {
    let filter = PayoutFilter {
        run: args.run,
        state: args.state,
        merchant: args.merchant,
        key: None,
        above: args.above,
        limit: args.limit,
    };
    let payouts = store.payouts(&filter).await?;
    if output.is_json() {
        output.json(&payouts)?;
        return Ok(Exit::Done);
    }
    let row = |payout: &PayoutView| {
        vec![
            payout.id.to_string(),
            payout.key.clone(),
            payout.run.to_string(),
            payout.merchant.clone(),
            format!("{} {}", payout.amount, payout.currency),
            stands(payout),
            payout.attempts.to_string(),
            or_dash(payout.last_error.as_deref()),
        ]
    };
    let rows: Vec<Vec<String>> = payouts.iter().map(row).collect();
    let columns = ["id", "key", "run", "merchant", "amount", "state", "tries", "last error"];
    output.table("", "no payouts", &columns, &rows)?;
    Ok(Exit::Done)
}

/// The state, with what a person must know of it.
fn stands(payout: &PayoutView) -> String {
    let state = payout.state.as_str();
    match &payout.reason {
        Some(reason) => format!("{state} ({reason})"),
        None if payout.state == InstructionState::Pending && payout.release == "waiting" => {
            format!("{state} (waits for its release)")
        }
        None => state.to_owned(),
    }
}

async fn show(output: Output, store: &dyn Store, args: ShowArgs) -> Result<Exit, CommandError> {
    let filter = PayoutFilter { key: Some(args.key.clone()), limit: 1, ..PayoutFilter::default() };
    let payouts = store.payouts(&filter).await?;
    let Some(payout) = payouts.first() else { return Err(no_payout(&args.key)) };
    let unit = format!("{}:{}", payout.currency, payout.merchant);
    let history = store.unit_history(payout.run, &unit).await?;
    let request = history.and_then(|unit| unit.requests.into_iter().find(|request| request.key == payout.key));
    if output.is_json() {
        let tries = request.as_ref().map_or(&[] as &[UnitTry], |request| &request.tries);
        output.json(&Shown { payout, tries })?;
        return Ok(Exit::Done);
    }
    let lines = [
        ("payout", payout.id.to_string()),
        ("key", payout.key.clone()),
        ("run", format!("{} of {}", payout.run, payout.job)),
        ("merchant", payout.merchant.clone()),
        ("amount", format!("{} {}", payout.amount, payout.currency)),
        ("value date", payout.value_date.map_or_else(dash, |day| day.to_string())),
        ("state", stands(payout)),
        ("in doubt", if payout.in_doubt { "yes: a try's outcome was unknown" } else { "no" }.to_owned()),
        ("tries", payout.attempts.to_string()),
        ("receiver", or_dash(payout.receiver.as_deref())),
        ("first sent", time_or(payout.first_sent_at)),
        ("key valid", payout.key_valid_until.map_or_else(dash, |until| format!("until {}", time(until)))),
        ("not before", time_or(payout.next_attempt_at)),
        ("reference", or_dash(payout.reference.as_deref())),
        ("returned as", or_dash(payout.return_reference.as_deref())),
        ("last error", or_dash(payout.last_error.as_deref())),
        ("written", format!("{} under term {}", time(payout.created_at), payout.term)),
        ("final", time_or(payout.final_at)),
    ];
    let lines: Vec<String> = lines.iter().map(|(what, text)| format!("{what:<12}{text}")).collect();
    output.line(&lines.join("\n"))?;
    if let Some(request) = &request {
        unit_history::tries(output, request)?;
    }
    Ok(Exit::Done)
}

fn no_payout(key: &str) -> CommandError {
    CommandError::Refused(format!("there is no payout {key:?}; see `bursar payouts list`"))
}

async fn release(output: Output, store: &dyn Store, args: ReleaseArgs) -> Result<Exit, CommandError> {
    let outcome = store.release_payouts(args.run, &args.keys, &args.reason, &actor()).await?;
    let output = output.done();
    let text = match &outcome {
        ReleaseOutcome::Released { payouts } => format!("run {}: {payouts} payouts released", args.run),
        ReleaseOutcome::Waits { request } => waits(*request),
        ReleaseOutcome::Unmatched { keys } => {
            let why = nothing_waits(keys);
            return Err(CommandError::Refused(format!("run {}: {why}; nothing was released", args.run)));
        }
        ReleaseOutcome::NotFound => {
            return Err(CommandError::Refused(format!("there is no run {}; see `bursar runs list`", args.run)));
        }
    };
    if output.is_json() {
        output.json(&outcome)?;
    } else {
        output.line(&text)?;
    }
    Ok(Exit::Done)
}

async fn resolve(output: Output, store: &dyn Store, args: ResolveArgs) -> Result<Exit, CommandError> {
    let outcome = store.resolve_payout(&args.key, &args.resolution(), &args.reason, &actor()).await?;
    let output = output.done();
    let text = match &outcome {
        ResolveOutcome::Resolved { was, now } => {
            format!("payout {}: was {}, is {}", args.key, was.as_str(), now.as_str())
        }
        ResolveOutcome::Waits { request } => waits(*request),
        ResolveOutcome::NotFound => return Err(no_payout(&args.key)),
        ResolveOutcome::Refused { state, why } => {
            let message = format!("payout {} is {}, and nothing was changed: {why}", args.key, state.as_str());
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

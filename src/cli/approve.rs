//! `bursar approve`: the second pair of eyes.

use clap::Args;

use super::context::Context;
use super::error::{CommandError, Exit};
use super::halt::reason;
use super::operator::actor;
use super::output::{Output, dash, or_dash, time};
use crate::store::{
    ActDone, ApprovalState, ApprovalView, CallWord, DecideOutcome, Decision, GuardedAct, Resolution, Store, StoreError,
};

/// Approve what another database role asked for, or say no to it. Without a request: what waits
///
/// With `[operator] four_eyes = true`, `payouts resolve`, `payouts release` and `imports
/// revert` file a request instead of acting. It is carried out by its approval, by another
/// database role than the one that asked (the role that the server itself names, so it is the
/// one that a client connected as), and only where what is found is what was found when it was
/// asked: otherwise nothing is done, both are shown, and a new request can be made. --reject
/// says no; the role that asked withdraws by it.
///
/// Two pairs of eyes stay asked for in the store, whatever a configuration says; `bursar
/// migrate` with `four_eyes = false` asks for their end, which waits for an approval too.
///
/// Examples:
///   bursar approve                     what waits
///   bursar approve 17                  it is carried out
///   bursar approve 17 --reject --reason 'the bank says otherwise'
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct ApproveArgs {
    /// The request.
    #[arg(value_name = "REQUEST")]
    request: Option<i64>,
    /// Show requests instead: those that wait.
    #[arg(long, conflicts_with_all = ["request", "reject", "reason"])]
    list: bool,
    /// Show requests that are decided too.
    #[arg(long, conflicts_with_all = ["reject", "reason"])]
    all: bool,
    /// Say no to it; withdraws one's own.
    #[arg(long, requires_all = ["request", "reason"])]
    reject: bool,
    /// Why; kept with the decision.
    #[arg(long, value_name = "TEXT", requires = "request", value_parser = reason)]
    reason: Option<String>,
    /// At most so many are shown, newest first.
    #[arg(long, default_value_t = 100, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
}

impl ApproveArgs {
    pub(super) async fn execute(self, context: &Context) -> Result<Exit, CommandError> {
        let (_, store) = context.open().await?;
        let output = context.output();
        let exit = match self.request.filter(|_| !self.all) {
            None => list(output, store.as_ref(), &self).await,
            Some(request) => decide(output, store.as_ref(), request, &self).await,
        };
        store.close().await;
        exit
    }
}

async fn list(output: Output, store: &dyn Store, args: &ApproveArgs) -> Result<Exit, CommandError> {
    let requests = store.approvals(args.request, args.all, args.limit).await?;
    if output.is_json() {
        output.json(&requests)?;
        return Ok(Exit::Done);
    }
    let row = |request: &ApprovalView| {
        let decided = request.decided.as_ref().map_or_else(dash, |decided| {
            format!("{} by {} ({}): {}", time(decided.at), decided.role, decided.by, or_dash(decided.reason.as_deref()))
        });
        vec![
            request.id.to_string(),
            asks(&request.asks),
            request.found.clone(),
            request.reason.clone(),
            format!("{} ({})", request.role, request.by),
            time(request.at),
            request.state.as_str().to_owned(),
            decided,
        ]
    };
    let rows: Vec<Vec<String>> = requests.iter().map(row).collect();
    let columns = ["request", "asks", "found", "why", "asked by", "at", "state", "decided"];
    output.table("", "nothing waits for a second pair of eyes", &columns, &rows)?;
    Ok(Exit::Done)
}

/// What is asked, in one line.
fn asks(asks: &GuardedAct) -> String {
    match asks {
        GuardedAct::ResolvePayout { key, resolution } => {
            let word = match resolution {
                Resolution::Paid(reference) => format!("--paid {reference}"),
                Resolution::NotPaid { bank_confirmed: None } => "--not-paid".to_owned(),
                Resolution::NotPaid { bank_confirmed: Some(word) } => format!("--not-paid --bank-confirmed {word}"),
                Resolution::Returned(reference) => format!("--returned {reference}"),
            };
            format!("payouts resolve {key} {word}")
        }
        GuardedAct::ResolveCall { run, unit, key: _, word } => {
            let word = match word {
                CallWord::Done(reference) => format!("--done {reference}"),
                CallWord::NotDone { confirmed: None } => "--not-done".to_owned(),
                CallWord::NotDone { confirmed: Some(word) } => format!("--not-done --bank-confirmed {word}"),
            };
            format!("units resolve {run} {unit} {word}")
        }
        GuardedAct::ReleasePayouts { run, keys } if keys.is_empty() => format!("payouts release {run}"),
        GuardedAct::ReleasePayouts { run, keys } => format!("payouts release {run} {}", keys.join(" ")),
        GuardedAct::RevertImport { import } => format!("imports revert {import}"),
        GuardedAct::EndFourEyes => "end of four eyes".to_owned(),
    }
}

async fn decide(output: Output, store: &dyn Store, request: i64, args: &ApproveArgs) -> Result<Exit, CommandError> {
    let decision = if args.reject { Decision::Reject } else { Decision::Approve };
    let outcome = store.decide(request, decision, args.reason.as_deref(), &actor()).await?;
    if let Some(why) = refused(request, &outcome) {
        return Err(CommandError::Refused(why));
    }
    let output = output.done();
    if output.is_json() {
        output.json(&outcome)?;
        return Ok(Exit::Done);
    }
    let text = match outcome {
        DecideOutcome::Approved { asks: what, did } => format!("request {request}: {}: {}", asks(&what), told(&did)),
        DecideOutcome::Rejected => format!("request {request} is rejected; nothing was done"),
        DecideOutcome::Withdrawn => format!("request {request} is withdrawn; nothing was done"),
        DecideOutcome::NotFound
        | DecideOutcome::SameRole { .. }
        | DecideOutcome::Closed { .. }
        | DecideOutcome::Moved { .. }
        | DecideOutcome::Refused { .. } => return Ok(Exit::Refused),
    };
    output.line(&text)?;
    Ok(Exit::Done)
}

fn told(did: &ActDone) -> String {
    match did {
        ActDone::Resolved { was, now } => format!("was {}, is {}", was.as_str(), now.as_str()),
        ActDone::Released { payouts } => format!("{payouts} payouts may leave"),
        ActDone::Reverted { withdrawn, adjusted } => {
            format!("{withdrawn} open entries withdrawn, {adjusted} settled ones adjusted")
        }
        ActDone::FourEyesEnded => "acts wait for nobody any more".to_owned(),
    }
}

/// Why nothing was done, and what to do.
fn refused(request: i64, outcome: &DecideOutcome) -> Option<String> {
    Some(match outcome {
        DecideOutcome::Approved { .. } | DecideOutcome::Rejected | DecideOutcome::Withdrawn => return None,
        DecideOutcome::NotFound => format!("there is no request {request}; see `bursar approve`"),
        DecideOutcome::SameRole { asked, approves } => format!(
            "request {request} was asked by the database role {asked}, and {approves} approves: expected another role, with \
             credentials of its own; --reject withdraws it"
        ),
        DecideOutcome::Closed { state } => {
            let how = match state {
                ApprovalState::Waiting => "waits",
                ApprovalState::Approved => "was approved",
                ApprovalState::Rejected => "was rejected",
                ApprovalState::Withdrawn => "was withdrawn",
            };
            format!("request {request} {how}; nothing changed")
        }
        DecideOutcome::Moved { asked, found } => format!(
            "request {request}: when it was asked there was: {asked}; now there is: {found}. Nothing was done; --reject ends it, \
             and the same can be asked again as things are now"
        ),
        DecideOutcome::Refused { why } => {
            format!("request {request} cannot be carried out any more: {why}. Nothing was done")
        }
    })
}

/// What a command says whose act waits now.
pub(super) fn waits(request: i64) -> String {
    format!("nothing is done yet: request {request} waits for another database role; `bursar approve {request}`")
}

/// Puts what a configuration says of four eyes in force where that adds to what the store asks for. Never takes away from it.
pub(super) async fn keep(store: &dyn Store, four_eyes: Option<bool>) -> Result<(), StoreError> {
    if four_eyes == Some(true) {
        store.set_four_eyes(true, "[operator] four_eyes = true", &actor()).await?;
    }
    Ok(())
}

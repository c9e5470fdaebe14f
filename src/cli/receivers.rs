//! `bursar receivers`: who is not sent to, and why.

use clap::{Args, Subcommand};

use super::context::Context;
use super::error::{CommandError, Exit};
use super::halt::reason;
use super::operator::actor;
use super::output::{Output, or_dash, time_or};
use crate::domain::web_address::WebAddress;
use crate::store::{ReceiverView, Store};

#[derive(Debug, Subcommand)]
pub(super) enum ReceiversCommand {
    /// Receivers that are stopped, or refused the last of what they were sent.
    List,
    Resume(ResumeArgs),
}

/// End a receiver's stop; its refusals are counted anew
///
/// Needed after too many refusals in a row. Any other stop ends by itself once the receiver
/// works again.
///
/// Example: `bursar receivers resume https://bank.internal --reason 'the bank has corrected its limits'`
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct ResumeArgs {
    /// Scheme, host and port, as listed.
    #[arg(value_parser = origin)]
    origin: String,
    /// Why; kept with the act.
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: String,
}

/// An origin as receivers are kept under: `https://bank.internal`, with a port where it is not the scheme's own.
fn origin(text: &str) -> Result<String, String> {
    let expected =
        "expected scheme, host and port as `bursar receivers list` shows them, such as https://bank.internal:8443";
    let address = WebAddress::new(text).map_err(|error| format!("{error}; {expected}"))?;
    let origin = address.origin();
    let is_whole = text == origin || text.strip_suffix('/') == Some(origin.as_str());
    if is_whole { Ok(origin) } else { Err(format!("its origin is {origin}; {expected}")) }
}

impl ReceiversCommand {
    pub(super) async fn execute(self, context: &Context) -> Result<Exit, CommandError> {
        let (_, store) = context.open().await?;
        let output = context.output();
        let exit = match self {
            Self::List => list(output, store.as_ref()).await,
            Self::Resume(args) => resume(output, store.as_ref(), &args).await,
        };
        store.close().await;
        exit
    }
}

async fn list(output: Output, store: &dyn Store) -> Result<Exit, CommandError> {
    let receivers = store.receivers().await?;
    if output.is_json() {
        output.json(&receivers)?;
        return Ok(Exit::Done);
    }
    let row = |receiver: &ReceiverView| {
        let ends = match (receiver.stopped_at, receiver.needs_resume) {
            (None, _) => "not stopped".to_owned(),
            (Some(_), true) => "by `receivers resume`".to_owned(),
            (Some(_), false) => format!("by itself; next try {}", time_or(receiver.next_probe_at)),
        };
        vec![
            receiver.origin.clone(),
            time_or(receiver.stopped_at),
            or_dash(receiver.reason.as_deref()),
            or_dash(receiver.detail.as_deref()),
            receiver.refusals.to_string(),
            ends,
        ]
    };
    let rows: Vec<Vec<String>> = receivers.iter().map(row).collect();
    let columns = ["receiver", "stopped", "why", "detail", "refusals in a row", "ends"];
    output.table("", "no receiver is stopped", &columns, &rows)?;
    Ok(Exit::Done)
}

async fn resume(output: Output, store: &dyn Store, args: &ResumeArgs) -> Result<Exit, CommandError> {
    let resumed = store.resume_receiver(&args.origin, &args.reason, &actor()).await?;
    let output = output.done();
    if output.is_json() {
        output.json(&serde_json::json!({ "origin": args.origin, "resumed": resumed }))?;
    } else if resumed {
        output.line(&format!("{} is sent to again", args.origin))?;
    } else {
        output.line(&format!("{} was not stopped; nothing changed", args.origin))?;
    }
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_origin_is_taken_for_one() {
        for right in ["https://bank.internal", "https://bank.internal/", "http://127.0.0.1:9000"] {
            assert!(origin(right).is_ok_and(|origin| origin == right.trim_end_matches('/')), "{right}");
        }
        for wrong in ["x", "bank.internal", "https://bank.internal/payouts", "ftp://bank.internal", ""] {
            assert!(origin(wrong).is_err_and(|why| why.contains("expected")), "{wrong}");
        }
    }
}

//! `bursar merchant`: no unit, and nothing pending is sent, for somebody whose money must wait.

use clap::{Args, Subcommand};

use super::context::Context;
use super::error::{CommandError, Exit};
use super::halt::reason;
use super::operator::actor;
use super::output::{Output, time};
use super::payouts::merchant;
use crate::store::{MerchantHold, Store};

#[derive(Debug, Subcommand)]
pub(super) enum MerchantCommand {
    /// Put a merchant on hold: it gets no unit, and nothing pending of it is sent.
    Hold(HoldArgs),
    /// End a merchant's hold; what was held for it goes on.
    Release(HoldArgs),
    /// Merchants on hold.
    List,
}

#[derive(Debug, Args)]
pub(super) struct HoldArgs {
    /// The merchant's id.
    #[arg(value_parser = merchant)]
    merchant: String,
    /// Why; kept with the act.
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: String,
}

impl MerchantCommand {
    pub(super) async fn execute(self, context: &Context) -> Result<Exit, CommandError> {
        let (_, store) = context.open().await?;
        let output = context.output();
        let exit = match self {
            Self::Hold(args) => hold(output, store.as_ref(), &args).await,
            Self::Release(args) => release(output, store.as_ref(), &args).await,
            Self::List => list(output, store.as_ref()).await,
        };
        store.close().await;
        exit
    }
}

async fn hold(output: Output, store: &dyn Store, args: &HoldArgs) -> Result<Exit, CommandError> {
    let report = store.hold_merchant(&args.merchant, &args.reason, &actor()).await?;
    let output = output.done();
    // A mistyped id holds nobody's money. Where this cannot be found out, the hold is there all the same.
    if let Ok(false) = store.is_merchant_known(&args.merchant).await {
        output.warn("no entry of this merchant is known; the hold is in force for when one comes");
    }
    if output.is_json() {
        output.json(&report)?;
        return Ok(Exit::Done);
    }
    let already = if report.already { "was on hold already" } else { "is on hold" };
    output.line(&format!(
        "{} {already}: {} payouts held, {} on the wire that cannot be called back",
        args.merchant, report.held, report.on_the_wire
    ))?;
    Ok(Exit::Done)
}

async fn release(output: Output, store: &dyn Store, args: &HoldArgs) -> Result<Exit, CommandError> {
    let freed = store.release_merchant(&args.merchant, &args.reason, &actor()).await?;
    let output = output.done();
    if output.is_json() {
        output
            .json(&serde_json::json!({ "merchant": args.merchant, "was_held": freed.is_some(), "payouts": freed }))?;
        return Ok(Exit::Done);
    }
    output.line(&match freed {
        Some(payouts) => format!("{} is on hold no more; {payouts} payouts go on", args.merchant),
        None => format!("{} was not on hold; nothing changed", args.merchant),
    })?;
    Ok(Exit::Done)
}

async fn list(output: Output, store: &dyn Store) -> Result<Exit, CommandError> {
    let holds = store.merchant_holds().await?;
    if output.is_json() {
        output.json(&holds)?;
        return Ok(Exit::Done);
    }
    let row =
        |hold: &MerchantHold| vec![hold.merchant.clone(), time(hold.held_at), hold.by.clone(), hold.reason.clone()];
    let rows: Vec<Vec<String>> = holds.iter().map(row).collect();
    output.table("", "no merchant is on hold", &["merchant", "since", "by", "why"], &rows)?;
    Ok(Exit::Done)
}

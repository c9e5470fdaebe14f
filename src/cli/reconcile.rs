//! `bursar reconcile`: a bank statement against the payouts.

mod matching;

use std::collections::BTreeMap;
use std::path::PathBuf;

use chrono::NaiveDate;
use clap::Args;
use serde_json::json;

use self::matching::{Finding, Verdict, compare};
use super::context::Context;
use super::error::{CommandError, Exit};
use super::output::{Output, dash};
use crate::ingest::{StatementLine, load_statement};
use crate::store::PAYOUTS_REPORTED;

/// Compare a bank statement with the payouts
///
/// The file is CSV in UTF-8 with the header `key,reference,amount,currency,value_date`: what
/// the bank paid, a payout's key (the end-to-end id) and the bank's reference (one of them may
/// be empty), the amount in major units, above 0, and a date. Everything that is wrong is named
/// with its line and column, and then nothing is compared. Nothing is changed.
///
/// matched               the same amount and currency, and paid with us; another value date is
///                       noted
/// amount differs        the same key, or reference, with another amount or currency
/// not paid with us      the bank paid what is pending, unknown, held or rejected: see
///                       `payouts resolve`
/// paid twice            an earlier line is the same payment
/// reference of several  no key of ours, and several payouts have the reference
/// unknown to us         neither key nor reference is known
/// not in the statement  paid with a value date in the days of the statement (from its first to
///                       its last, or --from and --to)
///
/// Exit code 0 where every line is matched and no payout is missing, else 1.
///
/// Example: bursar reconcile statement-2027-01-04.csv --from 2027-01-04 --to 2027-01-04
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct ReconcileArgs {
    /// The statement.
    file: PathBuf,
    /// Payouts paid with a value date from this day on have to be in it [default: its first].
    #[arg(long, value_name = "DATE")]
    from: Option<NaiveDate>,
    /// Up to this day [default: its last].
    #[arg(long, value_name = "DATE")]
    to: Option<NaiveDate>,
    /// Show what is matched too.
    #[arg(long)]
    all: bool,
}

impl ReconcileArgs {
    pub(super) fn execute(self, context: &Context) -> Result<Exit, CommandError> {
        let lines = load_statement(&self.file).map_err(|errors| {
            let findings = if errors.total() == 1 { "finding" } else { "findings" };
            CommandError::Refused(format!("{errors}\n{} {findings}; nothing was compared", errors.total()))
        })?;
        let days = self.days(&lines)?;
        Context::block_on(self.compare(context, &lines, days))
    }

    fn days(&self, lines: &[StatementLine]) -> Result<(NaiveDate, NaiveDate), CommandError> {
        let dates = || lines.iter().map(|line| line.value_date);
        match (self.from.or_else(|| dates().min()), self.to.or_else(|| dates().max())) {
            (Some(from), Some(to)) if from <= to => Ok((from, to)),
            (Some(from), Some(to)) => Err(CommandError::Usage(format!("--from {from} is after --to {to}"))),
            (None, _) | (_, None) => Err(CommandError::Usage(
                "the statement has no lines: give --from and --to to see what should be in it".to_owned(),
            )),
        }
    }

    async fn compare(
        self,
        context: &Context,
        lines: &[StatementLine],
        days: (NaiveDate, NaiveDate),
    ) -> Result<Exit, CommandError> {
        let (_, store) = context.open().await?;
        let keys: Vec<String> = lines.iter().filter_map(|line| line.key.clone()).collect();
        let references: Vec<String> = lines.iter().filter_map(|line| line.reference.clone()).collect();
        let payouts = store.stated_payouts(&keys, &references, days).await;
        store.close().await;
        let payouts = payouts?;
        if payouts.len() >= PAYOUTS_REPORTED as usize {
            return Err(CommandError::Refused(format!(
                "{PAYOUTS_REPORTED} payouts or more belong to this statement: split it, or give --from and --to"
            )));
        }
        let found = compare(lines, &payouts, days);
        let agrees = found.iter().all(|finding| finding.verdict == Verdict::Matched);
        let mut counts: BTreeMap<Verdict, u64> = Verdict::ALL.into_iter().map(|verdict| (verdict, 0)).collect();
        for finding in &found {
            *counts.entry(finding.verdict).or_default() += 1;
        }
        let output = context.output();
        let verdict = if agrees { Exit::Done } else { Exit::Refused };
        verdict.after(if output.is_json() {
            output.json(&json!({ "agrees": agrees, "from": days.0, "to": days.1, "counts": counts, "lines": found }))
        } else {
            let counts: Vec<String> = counts
                .iter()
                .filter(|(_, count)| **count > 0)
                .map(|(verdict, count)| format!("{count} {}", verdict.as_str()))
                .collect();
            let verdict = if agrees { "all agree" } else { "NOT ALL AGREE" };
            let counts = if counts.is_empty() { "nothing on either side".to_owned() } else { counts.join(", ") };
            show(output, &found, self.all)
                .and_then(|()| output.line(&format!("{} to {}: {counts}: {verdict}", days.0, days.1)))
        })
    }
}

fn show(output: Output, found: &[Finding], all: bool) -> Result<(), CommandError> {
    let row = |finding: &Finding| {
        let money = |amount: &str, currency: &str| format!("{amount} {currency}");
        let stated = finding.stated.as_ref();
        let ours = finding.ours.as_ref();
        let key = ours.map(|payout| payout.key.clone()).or_else(|| stated.and_then(|stated| stated.key.clone()));
        let reference = stated
            .and_then(|stated| stated.reference.clone())
            .or_else(|| ours.and_then(|payout| payout.reference.clone()));
        vec![
            finding.line.map_or_else(dash, |line| line.to_string()),
            finding.verdict.as_str().to_owned(),
            key.unwrap_or_else(dash),
            reference.unwrap_or_else(dash),
            stated.map_or_else(dash, |stated| money(&stated.amount, &stated.currency)),
            ours.map_or_else(dash, |payout| money(&payout.amount, &payout.currency)),
            ours.map_or_else(dash, |payout| payout.state.as_str().to_owned()),
            finding.note.clone().unwrap_or_else(dash),
        ]
    };
    let shown = found.iter().filter(|finding| all || finding.verdict != Verdict::Matched || finding.note.is_some());
    let rows: Vec<Vec<String>> = shown.map(row).collect();
    if rows.is_empty() {
        return Ok(());
    }
    let columns = ["line", "verdict", "key", "reference", "statement", "ours", "state", "note"];
    output.table("", "", &columns, &rows)
}

//! `bursar import`: a file of entries, all of it or nothing.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};

use super::context::Context;
use super::error::{CommandError, Exit};
use super::operator::actor;
use super::output::{Output, sums};
use crate::domain::money::Currency;
use crate::ingest::{self, ParsedFile, Sums};
use crate::store::{CONFLICTS_SHOWN, ImportConflict, ImportOutcome, NewImport};

/// Bring a file of entries in: all of it or nothing
///
/// The file is CSV in UTF-8 with the header
/// `id,merchant,currency,kind,amount,fee,occurred_at,available_at,reference`; amounts in major
/// units with a point, times in RFC 3339; fee, `available_at` and reference may be empty.
/// Everything that is wrong is named with its line and column, and then nothing is imported. A
/// second time it changes nothing. The same id with other content is a conflict: refused, and
/// both are shown. Exit code 1 where it is refused.
///
/// Examples:
///   bursar import captures.csv --source adyen --dry-run    counts and sums, no store needed
///   bursar import captures.csv --source adyen
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct ImportArgs {
    /// The file.
    file: PathBuf,
    /// Where its entries come from; ids are unique within a source.
    #[arg(long, value_name = "NAME")]
    source: String,
    /// Read and check it, show counts and sums per merchant, currency and kind, and change nothing. What the store has
    /// already is not looked at.
    #[arg(long)]
    dry_run: bool,
}

impl ImportArgs {
    pub(super) fn execute(self, context: &Context) -> Result<Exit, CommandError> {
        let parsed = ingest::load(&self.file, &self.source).map_err(|errors| {
            let findings = if errors.total() == 1 { "finding" } else { "findings" };
            CommandError::Refused(format!("{errors}\n{} {findings}; nothing was imported", errors.total()))
        })?;
        // Standard output has the answer; this is for whoever reads the log of a transfer.
        if let Some(line) = parsed.open_end {
            context.output().warn(&format!(
                "{}:{line}: no line break ends the last row: where the file was cut there, its reference is too",
                self.file.display()
            ));
        }
        if self.dry_run {
            return dry_run(context.output(), &parsed);
        }
        Context::block_on(import(context, parsed))
    }
}

async fn import(context: &Context, parsed: ParsedFile) -> Result<Exit, CommandError> {
    let (_, store) = context.open().await?;
    let new = NewImport {
        source: parsed.source,
        file_name: parsed.file_name,
        sha256: parsed.sha256,
        entries: parsed.entries,
    };
    let outcome = store.import(&new, &actor()).await?;
    store.close().await;
    report(context.output(), &outcome)
}

fn report(output: Output, outcome: &ImportOutcome) -> Result<Exit, CommandError> {
    match outcome {
        ImportOutcome::Imported { import, known } => {
            let output = output.done();
            if output.is_json() {
                output.json(&json!({ "outcome": "imported", "import": import, "known": known }))?;
            } else {
                let also = if *known > 0 { format!("; {known} more were there already") } else { String::new() };
                let rows = import.rows;
                output.line(&format!("import {}: {rows} entries, {}{also}", import.id, sums(&import.sums)))?;
            }
            Ok(Exit::Done)
        }
        ImportOutcome::NothingNew { same_file, known } => {
            if output.is_json() {
                output.json(&json!({ "outcome": "nothing_new", "same_file": same_file, "known": known }))?;
            } else {
                let before = same_file.map_or_else(String::new, |id| format!("; the same file came as import {id}"));
                output.line(&format!("nothing new: all {known} entries were there already{before}"))?;
            }
            Ok(Exit::Done)
        }
        ImportOutcome::Conflicts { shown, total } => Exit::Refused.after(if output.is_json() {
            output.json(&json!({ "outcome": "conflicts", "total": total, "conflicts": shown }))
        } else {
            conflicts(output, shown, *total)
        }),
    }
}

/// What differs, side by side: amounts in major units.
fn conflicts(output: Output, shown: &[ImportConflict], total: u64) -> Result<(), CommandError> {
    let row = |conflict: &ImportConflict| {
        let of = |entry: &crate::domain::entry::NewEntry| {
            let money = |minor| entry.currency.format(minor);
            format!(
                "{} {} {} fee {} of {}, {} to {}",
                entry.kind.as_str(),
                money(entry.amount),
                entry.currency,
                money(entry.fee),
                entry.merchant,
                entry.occurred_at.to_rfc3339(),
                entry.available_at.to_rfc3339()
            )
        };
        vec![
            conflict.line.to_string(),
            conflict.offered.id.clone(),
            of(&conflict.offered),
            of(&conflict.found),
            conflict.import.to_string(),
        ]
    };
    let rows: Vec<Vec<String>> = shown.iter().map(row).collect();
    output.table("", "", &["line", "id", "the file says", "the store has", "from import"], &rows)?;
    let more = if total > CONFLICTS_SHOWN as u64 {
        format!(" (the first {CONFLICTS_SHOWN} are shown)")
    } else {
        String::new()
    };
    output.line(&format!("{total} conflicts{more}: the same id with other content; nothing was imported"))
}

/// A sum in major units. One that no unit could hold is said to be so.
fn major(currency: Currency, minor: i128) -> String {
    i64::try_from(minor).map_or_else(|_| format!("{minor} minor units, out of range"), |minor| currency.format(minor))
}

fn dry_run(output: Output, parsed: &ParsedFile) -> Result<Exit, CommandError> {
    let entries = || parsed.entries.iter().map(|(_, entry)| entry);
    let (currencies, merchants) = (ingest::by_currency(entries()), ingest::by_merchant(entries()));
    if output.is_json() {
        let of = |currency: Currency, sums: &Sums| json!({ "entries": sums.rows, "amount": major(currency, sums.amount), "fee": major(currency, sums.fee) });
        let merchants: Vec<Value> = merchants
            .iter()
            .map(|((merchant, currency, kind), sums)| {
                json!({ "merchant": merchant, "currency": currency, "kind": kind.as_str(), "sums": of(*currency, sums) })
            })
            .collect();
        let currencies: serde_json::Map<String, Value> =
            currencies.iter().map(|(currency, sums)| (currency.to_string(), of(*currency, sums))).collect();
        output.json(&json!({
            "outcome": "dry_run",
            "source": parsed.source,
            "file": parsed.file_name,
            "sha256": parsed.sha256,
            "entries": parsed.entries.len(),
            "open_end": parsed.open_end,
            "currencies": currencies,
            "merchants": merchants,
        }))?;
        return Ok(Exit::Done);
    }
    let row = |merchant: &str, currency: Currency, kind: &str, sums: &Sums| {
        vec![
            merchant.to_owned(),
            currency.to_string(),
            kind.to_owned(),
            sums.rows.to_string(),
            major(currency, sums.amount),
            major(currency, sums.fee),
        ]
    };
    let rows: Vec<Vec<String>> = merchants
        .iter()
        .map(|((merchant, currency, kind), sums)| row(merchant, *currency, kind.as_str(), sums))
        .chain(currencies.iter().map(|(currency, sums)| row("ALL", *currency, "all", sums)))
        .collect();
    output.table("", "no entries", &["merchant", "currency", "kind", "entries", "amount", "fee"], &rows)?;
    let count = parsed.entries.len();
    output.line(&format!(
        "{}: {count} entries of {}, nothing wrong; nothing was changed",
        parsed.file_name, parsed.source
    ))?;
    Ok(Exit::Done)
}

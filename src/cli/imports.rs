//! `bursar imports`: what came in, and taking it back.

use clap::{Args, Subcommand};

use super::approve::waits;
use super::context::Context;
use super::error::{CommandError, Exit};
use super::halt::reason;
use super::operator::actor;
use super::output::{Output, dash, or_dash, sums, time, time_or};
use crate::store::{ImportRecord, ImportView, RevertOutcome, Store};

#[derive(Debug, Subcommand)]
pub(super) enum ImportsCommand {
    /// Imports, newest first.
    List(ListArgs),
    /// One import with what became of its entries.
    Show(ShowArgs),
    Revert(RevertArgs),
}

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// At most so many.
    #[arg(long, default_value_t = 50, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
}

#[derive(Debug, Args)]
pub(super) struct ShowArgs {
    /// The import's id.
    id: i64,
}

/// Take an import back: open entries are withdrawn, settled ones get opposite adjustments
///
/// Nothing is deleted and no money is edited. The ids of the entries are free again, so that a
/// corrected file can be imported. A second time it changes nothing.
///
/// Example: bursar imports revert 17 --reason 'file of the wrong day'
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct RevertArgs {
    /// The import's id.
    id: i64,
    /// Why; kept with the import.
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: String,
}

impl ImportsCommand {
    pub(super) async fn execute(self, context: &Context) -> Result<Exit, CommandError> {
        let store = match &self {
            Self::List(_) | Self::Show(_) => context.open().await?.1,
            Self::Revert(_) => context.open_to_act().await?,
        };
        let output = context.output();
        let exit = match self {
            Self::List(args) => list(output, store.as_ref(), args.limit).await,
            Self::Show(args) => show(output, store.as_ref(), args.id).await,
            Self::Revert(args) => revert(output, store.as_ref(), args).await,
        };
        store.close().await;
        exit
    }
}

fn no_import(id: i64) -> CommandError {
    CommandError::Refused(format!("there is no import {id}; see `bursar imports list`"))
}

async fn list(output: Output, store: &dyn Store, limit: u32) -> Result<Exit, CommandError> {
    let imports = store.imports(limit).await?;
    if output.is_json() {
        output.json(&imports)?;
        return Ok(Exit::Done);
    }
    let row = |import: &ImportRecord| {
        vec![
            import.id.to_string(),
            import.source.clone(),
            import.file_name.clone(),
            import.rows.to_string(),
            sums(&import.sums),
            time(import.at),
            import.by.clone(),
            time_or(import.reverted_at),
        ]
    };
    let rows: Vec<Vec<String>> = imports.iter().map(row).collect();
    output.table("", "no imports", &["import", "source", "file", "rows", "sums", "at", "by", "reverted"], &rows)?;
    Ok(Exit::Done)
}

async fn show(output: Output, store: &dyn Store, id: i64) -> Result<Exit, CommandError> {
    let import = store.import_by_id(id).await?.ok_or_else(|| no_import(id))?;
    if output.is_json() {
        output.json(&import)?;
    } else {
        output.line(&describe(&import))?;
    }
    Ok(Exit::Done)
}

fn describe(import: &ImportView) -> String {
    let record = &import.record;
    let reverted = record
        .reverted_at
        .map_or_else(dash, |at| format!("{}: {}", time(at), or_dash(record.revert_reason.as_deref())));
    let lines = [
        ("import", record.id.to_string()),
        ("source", record.source.clone()),
        ("file", record.file_name.clone()),
        ("sha-256", record.sha256.clone()),
        ("rows", record.rows.to_string()),
        ("sums", sums(&record.sums)),
        ("at", time(record.at)),
        ("by", record.by.clone()),
        ("reverted", reverted),
        (
            "entries",
            format!(
                "open {}, settled {}, withdrawn {}, reverted {}",
                import.open, import.settled, import.withdrawn, import.reverted
            ),
        ),
    ];
    let lines: Vec<String> = lines.iter().map(|(what, text)| format!("{what:<10}{text}")).collect();
    lines.join("\n")
}

async fn revert(output: Output, store: &dyn Store, args: RevertArgs) -> Result<Exit, CommandError> {
    let outcome = store.revert_import(args.id, &args.reason, &actor()).await?;
    let output = output.done();
    if outcome == RevertOutcome::NotFound {
        return Err(no_import(args.id));
    }
    if output.is_json() {
        output.json(&outcome)?;
        return Ok(Exit::Done);
    }
    let text = match outcome {
        RevertOutcome::Reverted { withdrawn, adjusted } => {
            format!("import {}: {withdrawn} open entries withdrawn, {adjusted} settled ones adjusted", args.id)
        }
        RevertOutcome::Already { at } => format!("import {} was taken back at {}; nothing changed", args.id, time(at)),
        RevertOutcome::Waits { request } => waits(request),
        RevertOutcome::NotFound => return Err(no_import(args.id)),
    };
    output.line(&text)?;
    Ok(Exit::Done)
}

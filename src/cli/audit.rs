//! `bursar audit`: the store's contents against the guarantees.

use clap::Args;

use super::context::Context;
use super::error::{CommandError, Exit};
use super::output::{sums, time};
use crate::store::{AuditCheck, AuditReport};

/// Check the store's contents against the guarantees; exit code 1 if one is broken.
///
/// Reads one snapshot of the primary and changes nothing. Every check is listed, with up to twenty examples of what breaks
/// it. What could not be proven (a term without a snapshot) is said and is no violation.
#[derive(Debug, Args)]
pub(super) struct AuditArgs {}

impl AuditArgs {
    pub(super) async fn execute(self, context: &Context) -> Result<Exit, CommandError> {
        let (_, store) = context.open().await?;
        let report = store.audit().await?;
        store.close().await;
        let verdict = if report.is_clean() { Exit::Done } else { Exit::Refused };
        let output = context.output();
        verdict.after(if output.is_json() { output.json(&report) } else { show(context, &report) })
    }
}

fn verdict(check: &AuditCheck) -> String {
    match (check.violations, &check.not_proven) {
        (0, None) => "holds".to_owned(),
        (0, Some(_)) => "holds, in part not proven".to_owned(),
        (n, _) => format!("BROKEN {n} times"),
    }
}

fn show(context: &Context, report: &AuditReport) -> Result<(), CommandError> {
    let row =
        |check: &AuditCheck| vec![check.guarantee.clone(), verdict(check), check.name.clone(), check.meaning.clone()];
    let rows: Vec<Vec<String>> = report.checks.iter().map(row).collect();
    context.output().table("", "no check", &["guarantee", "verdict", "check", "meaning"], &rows)?;
    let mut lines = Vec::new();
    for check in &report.checks {
        if let Some(not_proven) = &check.not_proven {
            lines.push(format!("not proven: {}: {not_proven}", check.name));
        }
        lines.extend(check.examples.iter().map(|example| format!("broken: {}: {example}", check.name)));
    }
    let broken = report.checks.iter().filter(|check| check.violations > 0).count();
    lines.push(format!("open at {}: {}", time(report.at), sums(&report.open)));
    lines.push(match broken {
        0 => format!("all {} checks hold", report.checks.len()),
        n => format!("{n} of {} checks are broken", report.checks.len()),
    });
    context.output().line(&lines.join("\n"))
}

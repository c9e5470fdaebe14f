//! `bursar halt`: the kill switch.

use std::collections::BTreeSet;

use clap::Args;

use super::context::{Context, actor};
use super::error::{CommandError, Exit};
use super::output::Output;
use crate::config::{Config, ScheduleFile};
use crate::domain::ElectionName;
use crate::store::{HaltReport, Scope};

/// Stop settling and sending, in force with the next transaction.
///
/// Halts every election that the store or the schedule file knows, or one. The leader stays; nothing is opened, claimed, settled or sent until `bursar resume`.
/// Outcomes of what had left before are still recorded. It returns once every batch that was under way has ended.
///
/// Example: bursar halt --reason 'fees of source adyen are wrong' --election settlement
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct HaltArgs {
    /// Why; kept with the act and shown in `status`.
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: String,
    /// Only this election.
    #[arg(long, value_name = "NAME")]
    election: Option<ElectionName>,
}

impl HaltArgs {
    pub(super) async fn execute(self, context: &Context) -> Result<Exit, CommandError> {
        let (config, store) = context.open().await?;
        let everything = self.election.is_none();
        let mut reports = store.halt(&scope(self.election), &self.reason, &actor()).await?;
        if everything {
            // One that was added to the schedule a minute ago is not known to the store before its first leader is.
            for election in scheduled(&config) {
                if reports.iter().all(|report| report.election != election) {
                    reports.extend(store.halt(&Scope::One(election), &self.reason, &actor()).await?);
                }
            }
        }
        store.close().await;
        report(context.output(), &reports, "halted")?;
        Ok(Exit::Done)
    }
}

/// The elections of the schedule file. A schedule that cannot be read holds up no halt: what the store knows is halted.
fn scheduled(config: &Config) -> BTreeSet<ElectionName> {
    ScheduleFile::load(&config.schedule).map(|schedule| schedule.elections()).unwrap_or_default()
}

/// The longest reason, in bytes.
const REASON_BYTES: usize = 1000;

/// A reason that says something.
pub(super) fn reason(text: &str) -> Result<String, String> {
    let text = text.trim();
    if text.is_empty() {
        Err("a reason says why; it may not be empty".to_owned())
    } else if text.len() > REASON_BYTES {
        Err(format!("a reason has at most {REASON_BYTES} bytes"))
    } else {
        Ok(text.to_owned())
    }
}

pub(super) fn scope(election: Option<ElectionName>) -> Scope {
    election.map_or(Scope::All, Scope::One)
}

/// Says what halting or resuming found.
pub(super) fn report(output: Output, reports: &[HaltReport], done: &str) -> Result<(), CommandError> {
    if output.is_json() {
        return output.json(&reports);
    }
    let rows: Vec<Vec<String>> = reports
        .iter()
        .map(|report| {
            let state = if report.already { format!("was {done} already") } else { done.to_owned() };
            vec![report.election.to_string(), state, report.on_the_wire.to_string(), format!("{} ms", report.waited_ms)]
        })
        .collect();
    output.table("", "no election is known to the store yet", &["election", "now", "on the wire", "waited"], &rows)
}

//! `bursar halt`: the kill switch.

use std::collections::BTreeSet;

use clap::Args;
use futures_util::future::join_all;

use super::context::Context;
use super::error::{CommandError, Exit};
use super::operator::actor;
use super::output::Output;
use crate::config::{Config, ScheduleFile};
use crate::domain::ElectionName;
use crate::store::{HaltReport, Store, StoreError};

/// Stop settling and sending, in force with the next transaction
///
/// Halts every election that the store or the schedule file knows, or one of them. The leader
/// stays; nothing is opened, claimed, settled or sent until `bursar resume`. Outcomes of what
/// had left before are still recorded. It returns once every batch that was under way has
/// ended. No election waits for another's work; one whose work does not end within a minute is
/// named, with exit code 75, and the others are halted.
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
        let elections = if let Some(election) = self.election {
            known(&config, &*store, &election, "halted").await?;
            BTreeSet::from([election])
        } else {
            // One that was added to the schedule a minute ago is not known to the store before its first leader is.
            store.elections().await?.into_iter().chain(scheduled(&config)).collect()
        };
        let by = actor();
        let acts = each(&elections, |election| store.halt(election, &self.reason, &by)).await;
        store.close().await;
        let written = report(context.output().done(), &acts.reports, "halted");
        acts.verdict("halted")?.after(written)
    }
}

/// What became of an act on several elections.
pub(super) struct Acts {
    /// Of those that it was done to.
    pub(super) reports: Vec<HaltReport>,
    failed: Vec<(ElectionName, StoreError)>,
}

/// Does it to every election at the same time: one whose work holds it up, or that fails, keeps back no other.
pub(super) async fn each<'a, A>(elections: &'a BTreeSet<ElectionName>, act: impl Fn(&'a ElectionName) -> A) -> Acts
where
    A: Future<Output = Result<HaltReport, StoreError>>,
{
    let outcomes = join_all(elections.iter().map(act)).await;
    let mut acts = Acts { reports: Vec::new(), failed: Vec::new() };
    for (election, outcome) in elections.iter().zip(outcomes) {
        match outcome {
            Ok(report) => acts.reports.push(report),
            Err(error) => acts.failed.push((election.clone(), error)),
        }
    }
    acts
}

impl Acts {
    /// Done, or the first error with the names of all that it was not done to.
    pub(super) fn verdict(self, done: &str) -> Result<Exit, CommandError> {
        let Some((_, error)) = self.failed.first().cloned() else { return Ok(Exit::Done) };
        let names: Vec<_> = self.failed.iter().map(|(election, _)| election.as_str()).collect();
        Err(CommandError::Partly { what: format!("not {done}: {}", names.join(", ")), source: Box::new(error.into()) })
    }
}

/// Refuses an election that neither the store nor the schedule file has: a mistyped name would look halted (or resumed) while the
/// one that was meant goes on as it is. Where either cannot be read, the act goes ahead.
pub(super) async fn known(
    config: &Config,
    store: &dyn Store,
    election: &ElectionName,
    done: &str,
) -> Result<(), CommandError> {
    let (Ok(status), Ok(schedule)) = (store.status().await, ScheduleFile::load(&config.schedule)) else {
        return Ok(());
    };
    let mut known = schedule.elections();
    known.extend(status.elections.into_iter().map(|known| known.election));
    if known.contains(election) {
        return Ok(());
    }
    let names = known.iter().map(ElectionName::as_str).collect::<Vec<_>>().join(", ");
    let names = if names.is_empty() { "none".to_owned() } else { names };
    Err(CommandError::Refused(format!(
        "there is no election {election}: the store and {} know {names}. Nothing was {done}; without --election every one is",
        config.schedule.display()
    )))
}

/// The elections of the schedule file. A schedule that cannot be read holds up no halt: what the store knows is halted.
fn scheduled(config: &Config) -> BTreeSet<ElectionName> {
    ScheduleFile::load(&config.schedule).map(|schedule| schedule.elections()).unwrap_or_default()
}

/// The longest reason, in bytes.
pub(super) const REASON_BYTES: usize = 1000;

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

/// Says what halting found.
fn report(output: Output, reports: &[HaltReport], done: &str) -> Result<(), CommandError> {
    if output.is_json() {
        return output.json(&reports);
    }
    let row = |report: &HaltReport| row(report, done);
    let rows: Vec<Vec<String>> = reports.iter().map(row).collect();
    output.table("", NONE, &COLUMNS, &rows)
}

const NONE: &str = "no election is known to the store yet";
const COLUMNS: [&str; 4] = ["election", "now", "on the wire", "waited"];

fn row(report: &HaltReport, done: &str) -> Vec<String> {
    let state = if report.already { format!("was {done} already") } else { done.to_owned() };
    vec![report.election.to_string(), state, report.on_the_wire.to_string(), format!("{} ms", report.waited_ms)]
}

/// Says what resuming found, with the requests of each election that waited for it.
pub(super) fn report_with(
    output: Output,
    reports: &[HaltReport],
    done: &str,
    waiting: impl Fn(&ElectionName) -> usize,
) -> Result<(), CommandError> {
    if output.is_json() {
        let with = |report: &HaltReport| -> Result<serde_json::Value, CommandError> {
            let mut value = serde_json::to_value(report).map_err(|error| CommandError::Internal(error.into()))?;
            if let Some(value) = value.as_object_mut() {
                value.insert("requests_waiting".to_owned(), waiting(&report.election).into());
            }
            Ok(value)
        };
        return output.json(&reports.iter().map(with).collect::<Result<Vec<_>, _>>()?);
    }
    let mut columns = COLUMNS.to_vec();
    columns.push("requests that waited");
    let with = |report: &HaltReport| {
        let mut row = row(report, done);
        row.push(waiting(&report.election).to_string());
        row
    };
    let rows: Vec<Vec<String>> = reports.iter().map(with).collect();
    output.table("", NONE, &columns, &rows)?;
    let all: usize = reports.iter().map(|report| waiting(&report.election)).sum();
    if all == 0 {
        return Ok(());
    }
    output.line(&format!(
        "{all} requests waited and are executed now; `bursar requests list` shows those that are not yet, `bursar requests \
         withdraw` takes one back"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_election_that_could_not_be_halted_is_named_and_keeps_back_no_other() {
        let names = ["accounts", "fees", "settlement"].map(|name| ElectionName::new(name).expect("a name"));
        let elections = BTreeSet::from(names.clone());
        let acts = each(&elections, |election| {
            let report = HaltReport { election: election.clone(), already: false, on_the_wire: 0, waited_ms: 0 };
            let busy = || StoreError::TimedOut { operation: "halt", within: std::time::Duration::from_mins(1) };
            std::future::ready(if election.as_str() == "settlement" { Ok(report) } else { Err(busy()) })
        })
        .await;
        assert_eq!(acts.reports.iter().map(|report| &report.election).collect::<Vec<_>>(), [&names[2]]);
        let error = acts.verdict("halted").expect_err("not all is done");
        assert_eq!(error.to_string(), "not halted: accounts, fees: halt: no answer within 60s");
        assert_eq!(error.exit(), Exit::Temporary);
    }
}

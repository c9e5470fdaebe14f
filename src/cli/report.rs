//! `bursar report`: a run's roll-forward per currency, and its payouts, for finance.

use chrono::{DateTime, Utc};
use clap::Args;

use super::context::Context;
use super::error::{CommandError, Exit};
use super::output::{Output, dash, or_dash, time};
use super::request;
use crate::domain::JobName;
use crate::store::{ReportedPayout, RollForward, RunReport};

/// What a run brought in, paid and carried, per currency to the last minor unit, and its payouts
///
/// brought forward + imported - fees - paid - in flight = carried forward
///
/// brought forward  carries of earlier runs of the job that this run's units took; below 0:
///                  owed by merchants
/// imported         amounts of all other entries that they took (with the opposites of
///                  reverted imports)
/// fees             fees of those entries
/// paid             payouts of the run that are paid
/// in flight        payouts that are not final: pending, sending, unknown, held
/// carried forward  carries that came of it: nets that were negative or too small, and what
///                  rejected and returned payouts gave back, whenever that was (of which: the
///                  three)
/// still open       what of those carries no later run has taken yet
///
/// Entries that are open are in no report until a run takes them. Each figure is read from its
/// own rows and compared with the units' nets and the journal; where anything differs by one
/// minor unit it is said, and the exit code is 1.
///
/// --csv: one file of two kinds of line. `sum` lines have run, currency and the figures, and
/// `yes` or `no` in `balanced`; `payout` lines have run, currency and what belongs to the
/// payout. Columns of the other kind are empty.
///
/// Example: bursar report daily-payouts --tick 2027-01-04T17:30:00Z --csv
#[derive(Debug, Args)]
#[command(verbatim_doc_comment)]
pub(super) struct ReportArgs {
    /// The job.
    #[arg(value_name = "JOB")]
    job: JobName,
    /// The run's nominal tick, RFC 3339, to the second; see `bursar runs list`.
    #[arg(long, value_name = "TIME", value_parser = request::tick)]
    tick: DateTime<Utc>,
    /// Only this run, where a manual one has the same tick.
    #[arg(long, value_name = "RUN")]
    run: Option<i64>,
    /// Answer in CSV.
    #[arg(long)]
    csv: bool,
}

/// The columns of the CSV.
const COLUMNS: [&str; 21] = [
    "line",
    "run",
    "currency",
    "brought_forward",
    "imported",
    "fees",
    "paid",
    "in_flight",
    "carried_forward",
    "carried",
    "rejected",
    "returned",
    "still_open",
    "balanced",
    "key",
    "merchant",
    "amount",
    "value_date",
    "reference",
    "state",
    "reason",
];
/// Columns of a line that both kinds have.
const SHARED: usize = 3;
/// Columns of a sum beyond those.
const OF_A_SUM: usize = 11;

impl ReportArgs {
    pub(super) async fn execute(self, context: &Context) -> Result<Exit, CommandError> {
        let output = context.output();
        if self.csv && output.is_json() {
            return Err(CommandError::Usage(
                "--csv and --json are two forms of one answer: give one of them".to_owned(),
            ));
        }
        let (_, store) = context.open().await?;
        let reports = store.report(&self.job, self.tick).await;
        store.close().await;
        let mut reports = reports?;
        reports.retain(|report| self.run.is_none_or(|run| run == report.run.id));
        if reports.is_empty() {
            let which = self.run.map_or_else(String::new, |run| format!(" with the id {run}"));
            return Err(CommandError::Refused(format!(
                "job {} has no run of the tick {}{which}; see `bursar runs list --job {}`",
                self.job,
                time(self.tick),
                self.job
            )));
        }
        let verdict = if reports.iter().all(RunReport::is_balanced) { Exit::Done } else { Exit::Refused };
        verdict.after(if output.is_json() {
            output.json(&reports)
        } else if self.csv {
            csv(&reports).and_then(|text| output.line(text.trim_end()))
        } else {
            reports.iter().try_for_each(|report| show(output, report))
        })
    }
}

/// All reports in one CSV.
fn csv(reports: &[RunReport]) -> Result<String, CommandError> {
    let broken = |error: anyhow::Error| CommandError::Internal(error.context("the report cannot be written as CSV"));
    let mut lines = csv::Writer::from_writer(Vec::new());
    let mut rows: Vec<Vec<String>> = Vec::new();
    for report in reports {
        rows.extend(report.currencies.iter().map(|sums| sum_line(report.run.id, sums)));
        rows.extend(report.payouts.iter().map(|payout| payout_line(report.run.id, payout)));
    }
    lines.write_record(COLUMNS).map_err(|error| broken(error.into()))?;
    for row in rows {
        lines.write_record(row).map_err(|error| broken(error.into()))?;
    }
    let bytes = lines.into_inner().map_err(|error| broken(error.into_error().into()))?;
    String::from_utf8(bytes).map_err(|error| broken(error.into()))
}

fn sum_line(run: i64, sums: &RollForward) -> Vec<String> {
    let mut line = vec!["sum".to_owned(), run.to_string(), sums.currency.clone()];
    line.extend(figures(sums));
    line.push(if sums.differences.is_empty() { "yes" } else { "no" }.to_owned());
    line.resize(COLUMNS.len(), String::new());
    line
}

fn payout_line(run: i64, payout: &ReportedPayout) -> Vec<String> {
    let mut line = vec!["payout".to_owned(), run.to_string(), payout.currency.clone()];
    line.resize(SHARED + OF_A_SUM, String::new());
    line.extend([
        payout.key.clone(),
        payout.merchant.clone(),
        payout.amount.clone(),
        payout.value_date.map_or_else(String::new, |date| date.to_string()),
        payout.reference.clone().unwrap_or_default(),
        payout.state.as_str().to_owned(),
        payout.reason.clone().unwrap_or_default(),
    ]);
    line
}

/// The figures of a currency, in the order of the columns.
fn figures(sums: &RollForward) -> [String; 10] {
    [
        &sums.brought_forward,
        &sums.imported,
        &sums.fees,
        &sums.paid,
        &sums.in_flight,
        &sums.carried_forward,
        &sums.carried,
        &sums.rejected,
        &sums.returned,
        &sums.still_open,
    ]
    .map(Clone::clone)
}

fn show(output: Output, report: &RunReport) -> Result<(), CommandError> {
    let run = &report.run;
    let heading = format!(
        "run {} of {} ({}, {}), tick {}, cutoff {}, value date {}",
        run.id,
        run.job,
        run.kind.as_str(),
        run.state.as_str(),
        time(run.tick),
        time(report.cutoff_at),
        report.value_date
    );
    let row = |sums: &RollForward| {
        let mut row = vec![sums.currency.clone()];
        row.extend(figures(sums));
        row
    };
    let rows: Vec<Vec<String>> = report.currencies.iter().map(row).collect();
    let columns = [
        "currency",
        "brought forward",
        "+ imported",
        "- fees",
        "- paid",
        "- in flight",
        "= carried forward",
        "of which carried",
        "rejected",
        "returned",
        "still open",
    ];
    output.table(&heading, "no money in this run", &columns, &rows)?;
    let mut verdicts = Vec::new();
    for sums in &report.currencies {
        match sums.differences.as_slice() {
            [] => verdicts.push(format!("{}: adds up, and agrees with units and journal", sums.currency)),
            found => verdicts.extend(found.iter().map(|what| format!("DOES NOT AGREE: {}: {what}", sums.currency))),
        }
    }
    if !verdicts.is_empty() {
        output.line(&verdicts.join("\n"))?;
    }
    let row = |payout: &ReportedPayout| {
        let state = payout.state.as_str();
        vec![
            payout.key.clone(),
            payout.merchant.clone(),
            format!("{} {}", payout.amount, payout.currency),
            payout.value_date.map_or_else(dash, |date| date.to_string()),
            or_dash(payout.reference.as_deref()),
            payout.reason.as_ref().map_or_else(|| state.to_owned(), |reason| format!("{state} ({reason})")),
        ]
    };
    let rows: Vec<Vec<String>> = report.payouts.iter().map(row).collect();
    let columns = ["key", "merchant", "amount", "value date", "reference", "state"];
    output.table("\nPAYOUTS", "none", &columns, &rows)?;
    if report.payouts_left_out > 0 {
        output.line(&format!("and {} more; see `bursar payouts list --run {}`", report.payouts_left_out, run.id))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::instruction::InstructionState;

    #[test]
    fn both_kinds_of_line_have_every_column() {
        let zero = || "0".to_owned();
        let sums = RollForward {
            currency: "JPY".to_owned(),
            brought_forward: zero(),
            imported: "11050".to_owned(),
            fees: "150".to_owned(),
            paid: "10900".to_owned(),
            in_flight: zero(),
            carried_forward: zero(),
            carried: zero(),
            rejected: zero(),
            returned: zero(),
            still_open: zero(),
            differences: Vec::new(),
        };
        let payout = ReportedPayout {
            return_reference: None,
            key: "bkey".to_owned(),
            merchant: "a, b".to_owned(),
            amount: "10900".to_owned(),
            currency: "JPY".to_owned(),
            value_date: None,
            reference: None,
            state: InstructionState::Paid,
            reason: None,
        };
        let (sum, payout) = (sum_line(7, &sums), payout_line(7, &payout));
        assert_eq!((sum.len(), payout.len()), (COLUMNS.len(), COLUMNS.len()));
        let at = |line: &[String], column: &str| {
            let place = COLUMNS.iter().position(|name| *name == column).expect(column);
            line[place].clone()
        };
        assert_eq!((at(&sum, "paid").as_str(), at(&sum, "balanced").as_str()), ("10900", "yes"));
        assert_eq!((at(&payout, "merchant").as_str(), at(&payout, "state").as_str()), ("a, b", "paid"));
    }
}

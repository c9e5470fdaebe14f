//! What came of it: terms with their takeover times, refusals, money in and out, and the audit's verdict. All of it is read
//! from the store after the story, but for the sums of what was brought in: those are the file's.

use std::collections::BTreeMap;

use anyhow::anyhow;
use serde::Serialize;

use super::sight::ended_units;
use super::stage::Stage;
use crate::cli::error::CommandError;
use crate::cli::output::{Output, dash};
use crate::domain::money::Currency;
use crate::ingest::Sums;
use crate::store::{AuditReport, FenceReject, TermView};

/// One term.
#[derive(Debug, Serialize)]
pub(super) struct TermLine {
    term: i64,
    replica: String,
    /// From the end of the term before to this one's first work, milliseconds.
    takeover_ms: Option<i64>,
    /// What that end was.
    after: Option<&'static str>,
    /// Why this one ended, as the demo did it and as the store has noted it.
    ended: String,
}

/// One currency's money, major units as text.
#[derive(Debug, Serialize)]
pub(super) struct MoneyLine {
    currency: String,
    imported: String,
    fees: String,
    instructed: String,
    carried: String,
    /// In minus out; anything but zero is a fault.
    difference: String,
}

/// All of it.
#[derive(Debug, Serialize)]
pub(super) struct Ending {
    pub(super) seconds: f64,
    terms: Vec<TermLine>,
    refusals: Vec<FenceReject>,
    runs: usize,
    units: u64,
    money: Vec<MoneyLine>,
    audit: AuditReport,
    /// Where the leader shows its status.
    pub(super) status_page: Option<String>,
    /// Where the store is, if it was asked to be kept.
    pub(super) folder: Option<String>,
    /// Whether money adds up, the audit is clean, and a refusal is on record.
    pub(super) good: bool,
}

/// Puts it together.
pub(super) async fn of(stage: &Stage, imported: &BTreeMap<Currency, Sums>) -> Result<Ending, CommandError> {
    let audit = stage.store.audit().await?;
    let mut terms: Vec<TermLine> = stage.sight.terms.iter().map(|term| term_line(stage, term)).collect();
    terms.sort_by_key(|line| line.term);
    let instructed = instructed(stage).await?;
    let money = imported
        .iter()
        .map(|(currency, sums)| money_line(*currency, *sums, &instructed, &audit.open))
        .collect::<Result<Vec<_>, _>>()?;
    let refusals = stage.sight.rejects.clone();
    let adds_up = imported.iter().zip(&money).all(|((currency, _), line)| line.difference == currency.format(0));
    Ok(Ending {
        seconds: stage.screen.elapsed().as_secs_f64(),
        good: audit.is_clean() && adds_up && !refusals.is_empty(),
        terms,
        refusals,
        runs: stage.sight.runs.len(),
        units: stage.sight.runs.iter().map(ended_units).sum(),
        money,
        audit,
        status_page: status_page(stage).await,
        folder: stage.world.is_kept().then(|| stage.world.folder().display().to_string()),
    })
}

fn term_line(stage: &Stage, term: &TermView) -> TermLine {
    let done = stage.ended.get(&term.term).map(|ended| ended.how);
    let ended = match (done, term.end_reason.as_deref()) {
        (Some(done), Some(noted)) => format!("{done} ({noted})"),
        (Some(done), None) => done.to_owned(),
        (None, Some(noted)) => noted.to_owned(),
        (None, None) => "leads".to_owned(),
    };
    let took = stage.took(term);
    TermLine {
        term: term.term,
        replica: term.replica.clone(),
        takeover_ms: took.map(|(ms, _)| ms),
        after: took.map(|(_, after)| after),
        ended,
    }
}

/// What the instructions of all runs sum up to.
async fn instructed(stage: &Stage) -> Result<BTreeMap<String, i128>, CommandError> {
    let mut sums = BTreeMap::new();
    for run in &stage.sight.runs {
        let Some(view) = stage.store.run_by_id(run.id).await? else { continue };
        for (currency, amount) in view.paid_out {
            *sums.entry(currency.clone()).or_insert(0) += minor(&currency, &amount)?;
        }
    }
    Ok(sums)
}

fn minor(currency: &str, amount: &str) -> Result<i128, CommandError> {
    let parsed = Currency::new(currency).and_then(|currency| currency.parse(amount));
    parsed.map(i128::from).map_err(|error| CommandError::Internal(anyhow!("{amount} {currency}: {error}")))
}

fn money_line(
    currency: Currency,
    imported: Sums,
    instructed: &BTreeMap<String, i128>,
    open: &BTreeMap<String, String>,
) -> Result<MoneyLine, CommandError> {
    let paid = instructed.get(currency.code()).copied().unwrap_or(0);
    let open = open.get(currency.code()).map_or(Ok(0), |amount| minor(currency.code(), amount))?;
    let text = |minor: i128| {
        let minor = i64::try_from(minor).map_err(|error| CommandError::Internal(error.into()))?;
        Ok::<_, CommandError>(currency.format(minor))
    };
    Ok(MoneyLine {
        currency: currency.to_string(),
        imported: text(imported.amount)?,
        fees: text(imported.fee)?,
        instructed: text(paid)?,
        carried: text(open)?,
        difference: text(imported.amount - imported.fee - paid - open)?,
    })
}

/// Shows it, in tables or as JSON.
pub(super) fn show(output: Output, ending: &Ending) -> Result<(), CommandError> {
    if output.is_json() {
        return output.json(ending);
    }
    let rows: Vec<Vec<String>> = ending
        .terms
        .iter()
        .map(|line| {
            let took = line.takeover_ms.map_or_else(dash, |ms| format!("{ms} ms"));
            let after = line.after.map_or_else(dash, ToOwned::to_owned);
            vec![line.term.to_string(), line.replica.clone(), took, after, line.ended.clone()]
        })
        .collect();
    output.table("\nTERMS", "none", &["term", "replica", "at work", "after", "ended"], &rows)?;
    let rows: Vec<Vec<String>> = ending
        .refusals
        .iter()
        .map(|reject| {
            let found = reject.found.map_or_else(dash, |found| found.term.to_string());
            let presented = reject.presented.term.to_string();
            vec![presented, found, reject.operation.clone(), reject.replica.clone()]
        })
        .collect();
    output.table("\nREFUSALS ON RECORD", "none", &["term presented", "in force", "operation", "by"], &rows)?;
    let rows: Vec<Vec<String>> = ending
        .money
        .iter()
        .map(|line| {
            [&line.currency, &line.imported, &line.fees, &line.instructed, &line.carried, &line.difference]
                .map(Clone::clone)
                .to_vec()
        })
        .collect();
    let columns = ["", "imported", "- fees", "= to be paid", "+ carried", "difference"];
    output.table("\nMONEY", "none", &columns, &rows)?;
    let broken = ending.audit.checks.iter().filter(|check| check.violations > 0);
    let mut lines: Vec<String> = broken
        .map(|check| format!("BROKEN {} times: {}: {}", check.violations, check.name, check.examples.join("; ")))
        .collect();
    let verdict = if ending.audit.is_clean() {
        format!("all {} checks hold", ending.audit.checks.len())
    } else {
        format!("{} checks are broken", lines.len())
    };
    lines.push(format!(
        "{} runs, {} units settled. Audit: {verdict}. {:.1} s",
        ending.runs, ending.units, ending.seconds
    ));
    output.line(&format!("\n{}", lines.join("\n")))
}

/// Where the leader's status is to be seen; asked of the coordinator, where each replica is registered with its address.
async fn status_page(stage: &Stage) -> Option<String> {
    let leader = stage.sight.leader()?.replica.clone();
    let coordinator = crate::app::coordinator(&stage.config);
    let replicas = coordinator.list_replicas().await.ok()?;
    let leads = replicas.into_iter().find(|replica| replica.replica_id.as_str() == leader)?;
    Some(format!("http://{}/", leads.address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_in_is_fees_what_goes_out_and_what_is_carried() {
        let eur = Currency::new("EUR").expect("a currency");
        let imported = Sums { rows: 3, amount: 10_000, fee: 250 };
        let instructed = BTreeMap::from([("EUR".to_owned(), 9_760)]);
        let open = BTreeMap::from([("EUR".to_owned(), "-0.10".to_owned())]);
        let line = money_line(eur, imported, &instructed, &open).expect("in range");
        assert_eq!((line.difference.as_str(), line.carried.as_str()), ("0.00", "-0.10"));
        let line = money_line(eur, imported, &BTreeMap::new(), &open).expect("in range");
        assert_eq!(line.difference, "97.60");
    }
}

//! The store by itself: the product's own audit, and queries that do not know its code: terms, ticks, units.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, TimeDelta, Utc};

use super::books::tell;
use super::ground::{Ground, JOBS};
use super::quiet::Quiet;
use crate::support::cluster::ELECTION;

/// Sums for the report.
#[derive(Debug, Default)]
pub struct Ledger {
    /// Units by state.
    pub units: BTreeMap<String, i64>,
    /// Refusals of the fence by operation.
    pub rejects: BTreeMap<String, i64>,
    /// Runs by state.
    pub runs: BTreeMap<String, i64>,
    /// Terms that the store accepted.
    pub terms: usize,
    /// Why tenures ended.
    pub ends: BTreeMap<String, i64>,
    /// What is not as it must be.
    pub findings: Vec<String>,
}

/// Looks at all of it.
pub async fn inspect(ground: &Ground, quiet: &Quiet) -> Ledger {
    let mut ledger = Ledger {
        units: counts(ground, "select state, count(*) from bursar.unit group by 1").await,
        rejects: counts(ground, "select operation, count(*) from bursar.fence_reject group by 1").await,
        runs: counts(ground, "select state, count(*) from bursar.run group by 1").await,
        ends: counts(ground, "select coalesce(end_reason, '-'), count(*) from bursar.term_history group by 1").await,
        ..Ledger::default()
    };
    // The last one may be at work: what it has on the wire is current, and no violation. It reads all that was ever written,
    // so it has more time than other commands.
    let audit = ground.operator.command(&["audit"]);
    if audit.code() != Some(0) {
        ledger.findings.push(format!("audit: {}\n{}\n{}", audit.status, audit.stdout, audit.stderr));
    }
    ledger.terms = terms(ground, &mut ledger.findings).await;
    for job in JOBS {
        ticks(ground, job.name, job.every, &mut ledger.findings).await;
    }
    units(ground, quiet, &mut ledger.findings).await;
    let settled = settled_calls(ground).await;
    let made = ground.calls.all().len();
    if i64::try_from(made).unwrap_or(i64::MAX) < settled {
        ledger.findings.push(format!("calls: {settled} are settled, {made} were made"));
    }
    ledger
}

/// How many calls are settled.
async fn settled_calls(ground: &Ground) -> i64 {
    let query = "select count(*) from bursar.unit u join bursar.run r on r.id = u.run_id
                  where r.job = 'calls' and u.state = 'settled'";
    ground.cluster.database().value(query).await
}

async fn counts(ground: &Ground, query: &str) -> BTreeMap<String, i64> {
    ground.cluster.database().rows::<(String, i64)>(query).await.into_iter().collect()
}

/// In the order in which the store accepted them, told by its snapshots and no clock, terms rise.
async fn terms(ground: &Ground, findings: &mut Vec<String>) -> usize {
    let query = format!(
        "select term from bursar.term_history where election = '{ELECTION}' order by pg_snapshot_xmax(snapshot)::text::numeric"
    );
    let accepted: Vec<(i64,)> = ground.cluster.database().rows(&query).await;
    let falls = accepted.windows(2).filter(|pair| pair[1].0 <= pair[0].0);
    tell("terms", falls.map(|pair| format!("{} was accepted behind {}", pair[1].0, pair[0].0)).collect(), findings);
    accepted.len()
}

/// Every tick from the first on has its outcome, once.
async fn ticks(ground: &Ground, job: &str, every: i64, findings: &mut Vec<String>) {
    let query = format!("select tick from bursar.run where job = '{job}' and kind = 'tick' order by tick");
    let found: Vec<(DateTime<Utc>,)> = ground.cluster.database().rows(&query).await;
    let query = format!("select evaluated_until from bursar.job where name = '{job}'");
    let until: DateTime<Utc> = ground.cluster.database().value(&query).await;
    let distinct: BTreeSet<DateTime<Utc>> = found.iter().map(|(tick,)| *tick).collect();
    let mut wrong = Vec::new();
    if distinct.len() < found.len() {
        wrong.push(format!("{job}: {} runs of {} ticks", found.len(), distinct.len()));
    }
    let Some(first) = distinct.first().copied() else {
        findings.push(format!("ticks: {job} never ran"));
        return;
    };
    let mut tick = first;
    while tick <= until {
        if !distinct.contains(&tick) {
            wrong.push(format!("{job}: {tick} has no outcome, evaluated until {until}"));
        }
        tick += TimeDelta::seconds(every);
    }
    let off = distinct.iter().filter(|tick| (**tick - first).num_seconds() % every != 0 || **tick > until);
    wrong.extend(off.map(|tick| format!("{job}: {tick} is no tick, or not yet looked at")));
    tell("ticks", wrong, findings);
}

/// Every unit of what is over has ended, or is set aside and says why.
async fn units(ground: &Ground, quiet: &Quiet, findings: &mut Vec<String>) {
    let query = format!(
        "select run_id::text || ' ' || key from bursar.unit
          where run_id <= {} and (state = 'pending' or (state = 'set_aside' and last_error is null))",
        quiet.last_run
    );
    let found: Vec<(String,)> = ground.cluster.database().rows(&query).await;
    tell("units", found.into_iter().map(|(unit,)| format!("{unit} has not ended")).collect(), findings);
}

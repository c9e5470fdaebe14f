//! The store by itself: the product's own audit, and queries that do not know its code: terms, ticks, units.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, TimeDelta, Utc};

use super::books::tell;
use super::ground::{Ground, JOBS, Scheduled};
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
        ticks(ground, job, &mut ledger.findings).await;
    }
    units(ground, quiet, &mut ledger.findings).await;
    calls(ground, &mut ledger.findings).await;
    ledger
}

/// Every call that counts as made was made.
async fn calls(ground: &Ground, findings: &mut Vec<String>) {
    let query = "select i.idempotency_key from bursar.unit u
                   join bursar.run r on r.id = u.run_id join bursar.instruction i on i.unit_id = u.id
                  where r.job = 'calls' and i.kind = 'call' and u.state = 'settled'";
    let settled: Vec<(String,)> = ground.cluster.database().rows(query).await;
    let made = ground.calls.idempotency_keys();
    let missing = settled.into_iter().filter(|(key,)| !made.contains(key));
    tell("calls", missing.map(|(key,)| format!("{key} is settled, and was never made")).collect(), findings);
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

/// Every tick from the job's creation on has its outcome, once.
async fn ticks(ground: &Ground, job: Scheduled, findings: &mut Vec<String>) {
    let Scheduled { name, every, at, .. } = job;
    let query = format!("select tick from bursar.run where job = '{name}' and kind = 'tick' order by tick");
    let found: Vec<(DateTime<Utc>,)> = ground.cluster.database().rows(&query).await;
    let query = format!("select created_at, evaluated_until from bursar.job where name = '{name}'");
    let times: Vec<(DateTime<Utc>, DateTime<Utc>)> = ground.cluster.database().rows(&query).await;
    let [(created, until)] = times[..] else {
        findings.push(format!("ticks: there is no {name}"));
        return;
    };
    let found: Vec<DateTime<Utc>> = found.into_iter().map(|(tick,)| tick).collect();
    let wrong = missing_or_too_many(&found, &due(created, until, every, at));
    tell("ticks", wrong.into_iter().map(|what| format!("{name}, {created} to {until}: {what}")).collect(), findings);
}

/// The ticks behind one moment up to another, of whoever ticks at that second of every so many.
fn due(behind: DateTime<Utc>, until: DateTime<Utc>, every: i64, at: i64) -> Vec<DateTime<Utc>> {
    let before = (behind.timestamp() - at).div_euclid(every) * every + at;
    let first = DateTime::from_timestamp(before + every, 0).expect("a time of ours");
    std::iter::successors(Some(first), |tick| Some(*tick + TimeDelta::seconds(every)))
        .take_while(|tick| *tick <= until)
        .collect()
}

fn missing_or_too_many(found: &[DateTime<Utc>], due: &[DateTime<Utc>]) -> Vec<String> {
    let distinct: BTreeSet<DateTime<Utc>> = found.iter().copied().collect();
    let mut wrong = Vec::new();
    if distinct.len() < found.len() {
        wrong.push(format!("{} runs of {} ticks", found.len(), distinct.len()));
    }
    let due: BTreeSet<DateTime<Utc>> = due.iter().copied().collect();
    wrong.extend(due.difference(&distinct).map(|tick| format!("{tick} has no outcome")));
    wrong.extend(distinct.difference(&due).map(|tick| format!("{tick} is no tick, or not yet looked at")));
    wrong
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

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str) -> DateTime<Utc> {
        text.parse().expect("a time")
    }

    #[test]
    fn ticks_are_due_from_the_creation_on() {
        let due = |from, until| due(time(from), time(until), 10, 2);
        let wanted = ["2026-01-01T00:00:12Z", "2026-01-01T00:00:22Z"].map(time);
        assert_eq!(due("2026-01-01T00:00:02.5Z", "2026-01-01T00:00:31Z"), wanted);
        assert_eq!(due("2026-01-01T00:00:11.9Z", "2026-01-01T00:00:22Z"), wanted);
        assert!(due("2026-01-01T00:00:13Z", "2026-01-01T00:00:21Z").is_empty());
    }

    #[test]
    fn a_tick_that_is_missing_doubled_or_none_is_a_finding() {
        let [one, two] = ["2026-01-01T00:00:12Z", "2026-01-01T00:00:22Z"].map(time);
        assert!(missing_or_too_many(&[one, two], &[one, two]).is_empty());
        for found in [&[two][..], &[one], &[one, two, two], &[one, two, time("2026-01-01T00:00:23Z")]] {
            assert_eq!(missing_or_too_many(found, &[one, two]).len(), 1, "{found:?}");
        }
    }
}

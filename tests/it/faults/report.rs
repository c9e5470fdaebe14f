//! What a run has shown, printed past the harness and kept beside the history.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use super::Shown;
use super::kind::Kind;
use super::leaders::{Gap, quantiles};

fn listed(counts: &BTreeMap<String, i64>) -> String {
    let listed: Vec<String> = counts.iter().map(|(name, count)| format!("{name} {count}")).collect();
    if listed.is_empty() { "none".to_owned() } else { listed.join(", ") }
}

fn spread(gaps: &[&Gap]) -> String {
    let times: Vec<Duration> = gaps.iter().map(|gap| gap.time()).collect();
    match quantiles(times) {
        Some([half, most, all]) => {
            format!(
                "{} times, p50 {:.1} s, p99 {:.1} s, max {:.1} s",
                gaps.len(),
                half.as_secs_f64(),
                most.as_secs_f64(),
                all.as_secs_f64()
            )
        }
        None => "none".to_owned(),
    }
}

/// The report's text.
pub fn report(shown: &Shown) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: &str| writeln!(text, "{name:<28}{value}").expect("a String takes all");
    let mut by_kind: BTreeMap<Kind, i64> = BTreeMap::new();
    for fault in &shown.done.faults {
        *by_kind.entry(fault.kind).or_default() += 1;
    }
    line("seed, minutes", &format!("{}, {:.1}", shown.seed, shown.took.as_secs_f64() / 60.0));
    line("faults", &shown.done.faults.len().to_string());
    for (kind, count) in &by_kind {
        line(&format!("  {kind:?}"), &count.to_string());
    }
    line("ended by themselves", &format!("{}: {}", shown.done.ended.len(), shown.done.ended.join(", ")));
    line("imports", &format!("{} files, {} tries again", shown.offered.files, shown.offered.again));
    line("terms", &shown.ledger.terms.to_string());
    line("ends of tenures", &listed(&shown.ledger.ends));
    line("runs", &listed(&shown.ledger.runs));
    line("units", &listed(&shown.ledger.units));
    let payouts = shown.books.payouts.iter().map(|(what, count)| (what.clone(), i64::try_from(*count).unwrap_or(0)));
    line("payouts", &listed(&payouts.collect()));
    let book = format!("{} payments, {} requests", shown.books.payments, shown.books.requests);
    line("the receiver's book", &book);
    line("refused by the fence", &listed(&shown.ledger.rejects));
    line("set aside, then tried again", &listed(&shown.quiet.set_aside));
    let reasons: BTreeMap<String, i64> = shown.duty.resumed.iter().fold(BTreeMap::new(), |mut reasons, reason| {
        *reasons.entry(reason.clone()).or_default() += 1;
        reasons
    });
    line("halted by itself, resumed", &listed(&reasons));
    line("receivers resumed", &shown.duty.receivers.to_string());
    let all: Vec<&Gap> = shown.leaders.gaps.iter().collect();
    let up: Vec<&Gap> = shown.leaders.gaps.iter().filter(|gap| gap.servers_up && gap.starved.is_zero()).collect();
    line("takeover, all", &spread(&all));
    line("takeover, servers up", &spread(&up));
    let leaderless: Duration = all.iter().map(|gap| gap.time()).sum();
    line("leaderless", &format!("{:.1} s", leaderless.as_secs_f64()));
    let longest = shown.leaders.double.iter().map(|(_, time)| *time).max().unwrap_or_default();
    let double = format!("{} stretches behind a hand in etcd, longest {longest:?}", shown.leaders.double.len());
    line("two leaders", &double);
    line("samples", &shown.leaders.samples.to_string());
    let starved: Duration = shown.starved.iter().map(|one| one.until.since(one.from)).sum();
    line("this process did not run", &format!("{} times, {:.1} s in all", shown.starved.len(), starved.as_secs_f64()));
    line("quiet after", &format!("{:.1} s", shown.quiet.took.as_secs_f64()));
    line("history", &shown.folder.display().to_string());
    for finding in &shown.findings {
        line("FINDING", finding);
    }
    text
}

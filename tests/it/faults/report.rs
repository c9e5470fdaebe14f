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

fn spread(times: Vec<Duration>) -> String {
    let count = times.len();
    quantiles(times).map_or_else(
        || "none".to_owned(),
        |times| {
            let [half, most, all] = times.map(|time| time.as_secs_f64());
            format!("{count} times, p50 {half:.1} s, p99 {most:.1} s, max {all:.1} s")
        },
    )
}

fn minutes(time: Duration) -> f64 {
    time.as_secs_f64() / 60.0
}

/// The report's text.
pub fn report(shown: &Shown) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: &str| writeln!(text, "{name:<28}{value}").expect("a String takes all");
    let mut by_kind: BTreeMap<Kind, i64> = BTreeMap::new();
    for fault in shown.done.faults.iter().filter(|fault| fault.hit) {
        *by_kind.entry(fault.kind).or_default() += 1;
    }
    line("seed, form", &format!("{}, {}", shown.seed, shown.form));
    line("faults for, took", &format!("{:.1} min, {:.1} min", minutes(shown.time), minutes(shown.took)));
    let missed = shown.done.faults.iter().filter(|fault| !fault.hit).count();
    line(
        "faults",
        &format!("{}, and {missed} that were not what they were meant to be", shown.done.faults.len() - missed),
    );
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
    line("refused by the receiver", &format!("{} of an older term", shown.books.refused));
    line("set aside, then tried again", &listed(&shown.quiet.set_aside));
    let reasons: BTreeMap<String, i64> = shown.duty.resumed.iter().fold(BTreeMap::new(), |mut reasons, reason| {
        *reasons.entry(reason.clone()).or_default() += 1;
        reasons
    });
    line("halted by itself, resumed", &listed(&reasons));
    line("receivers resumed", &shown.duty.receivers.to_string());
    let gaps = &shown.leaders.gaps;
    line("takeover, all", &spread(gaps.iter().map(Gap::time).collect()));
    line("takeover, behind servers", "from the end of the last fault of a server, by what had ended the one before");
    let mut by_cause: BTreeMap<String, Vec<Duration>> = BTreeMap::new();
    for gap in gaps {
        let cause = gap.cause.map_or_else(|| "by itself".to_owned(), |cause| format!("{cause:?}"));
        by_cause.entry(cause).or_default().push(gap.counted());
    }
    for (cause, times) in by_cause {
        line(&format!("  {cause}"), &spread(times));
    }
    let leaderless: Duration = gaps.iter().map(Gap::time).sum();
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

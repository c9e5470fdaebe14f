//! The sample entries: read by bursar and netted by bursar, they come to what another program says.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use bursar::domain::JobName;
use bursar::domain::entry::EntryKind;
use bursar::domain::money::Currency;
use bursar::domain::netting::{BoundSums, Verdict, net};
use bursar::ingest::{self, ParsedFile};

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn sample(name: &str) -> PathBuf {
    repository().join("config/samples").join(name)
}

/// Net and state per merchant and currency, in major units, as bursar nets them without a minimum.
fn netted(file: &ParsedFile) -> BTreeMap<(String, String), [String; 5]> {
    let job = JobName::new("sample").expect("a name");
    let mut bound: BTreeMap<(String, Currency), (u64, i128, i128)> = BTreeMap::new();
    for (_, entry) in &file.entries {
        let sums = bound.entry((entry.merchant.clone(), entry.currency)).or_default();
        *sums = (sums.0 + 1, sums.1 + i128::from(entry.amount), sums.2 + i128::from(entry.fee));
    }
    let shown = |currency: Currency, minor: i128| currency.format(i64::try_from(minor).expect("in range"));
    bound
        .into_iter()
        .map(|((merchant, currency), (entries, amount, fees))| {
            let sums = BoundSums { entries, amounts: vec![(file.source.clone(), amount)], fees, carried_in: 0 };
            let (net, state) = match net(&job, &merchant, currency, &sums, 0) {
                Verdict::Settled { net, .. } => (net, "settled"),
                Verdict::Carried { net, .. } => (net, "carried"),
                other @ (Verdict::Empty | Verdict::OutOfRange) => panic!("{merchant} {currency}: {other:?}"),
            };
            let row = [
                entries.to_string(),
                shown(currency, amount),
                shown(currency, fees),
                currency.format(net),
                state.to_owned(),
            ];
            ((merchant, currency.code().to_owned()), row)
        })
        .collect()
}

#[test]
fn the_sample_nets_to_what_an_independent_program_says() {
    let file = ingest::load(&sample("entries.csv"), "psp").unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!((file.entries.len(), file.file_name.as_str()), (12_000, "entries.csv"));
    let mut expected: BTreeMap<(String, String), [String; 5]> = BTreeMap::new();
    let mut reader = csv::Reader::from_path(sample("expected-nets.csv")).expect("the nets");
    for row in reader.records() {
        let row = row.expect("a row");
        let rest = [2, 3, 4, 5, 6].map(|n| row[n].to_owned());
        assert!(expected.insert((row[0].to_owned(), row[1].to_owned()), rest).is_none(), "twice: {row:?}");
    }
    let found = netted(&file);
    assert_eq!(found.len(), expected.len());
    for (key, row) in &expected {
        assert_eq!(found.get(key), Some(row), "{key:?}");
    }
}

#[test]
fn the_sample_holds_what_goes_wrong_in_practice() {
    let file = ingest::load(&sample("entries.csv"), "psp").unwrap_or_else(|errors| panic!("{errors}"));
    let entries = || file.entries.iter().map(|(_, entry)| entry);
    let by_currency = ingest::by_currency(entries());
    for code in ["EUR", "JPY", "KWD", "CLF"] {
        let rows = by_currency[&Currency::new(code).expect("a currency")].rows;
        assert!(rows > 100, "{code}: {rows}");
    }
    for kind in EntryKind::ALL {
        let rows = entries().filter(|entry| entry.kind == kind).count();
        assert_eq!(rows > 0, kind != EntryKind::Carry, "{kind:?}: {rows}");
    }
    let merchants: std::collections::BTreeSet<&str> = entries().map(|entry| entry.merchant.as_str()).collect();
    assert_eq!(merchants.len(), 3_000);
    for part in ["Acme-", "acme-", "商店", "متجر", "חנות", "दुकान", ", ", "\""] {
        assert!(merchants.iter().any(|merchant| merchant.contains(part)), "{part}");
    }
    assert!(entries().any(|entry| entry.fee < 0) && entries().any(|entry| entry.available_at > entry.occurred_at));
    let text = std::fs::read_to_string(sample("entries.csv")).expect("the sample");
    assert!(text.contains("e\u{301}") && text.contains(",eur,") && text.contains("\"\""));
}

#[test]
fn the_sample_is_what_its_generator_makes() {
    let made = Command::new("python3")
        .arg(repository().join("scripts/samples.py"))
        .arg("--check")
        .output()
        .expect("python3 makes the samples: install it");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

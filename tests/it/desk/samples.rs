//! Entries for tests, in few words.

use bursar::domain::entry::{EntryKind, NewEntry};
use bursar::store::NewImport;

use super::currency;

/// A file of entries, a line each.
pub fn file(source: &str, name: &str, entries: Vec<NewEntry>) -> NewImport {
    NewImport {
        source: source.to_owned(),
        file_name: name.to_owned(),
        sha256: "0".repeat(64),
        entries: (2..).zip(entries).collect(),
    }
}

/// An entry, available since long ago. The amount is in major units.
pub fn entry(id: &str, merchant: &str, code: &str, kind: EntryKind, amount: &str, fee: &str) -> NewEntry {
    let currency = currency(code);
    let at = "2026-01-05T10:00:00Z".parse().expect("a time");
    NewEntry {
        id: id.to_owned(),
        merchant: merchant.to_owned(),
        currency,
        kind,
        amount: currency.parse(amount).expect("a test's amount is one"),
        fee: if fee.is_empty() { 0 } else { currency.parse(fee).expect("a test's fee is one") },
        occurred_at: at,
        available_at: at,
        reference: None,
    }
}

/// A capture without a fee.
pub fn capture(id: &str, merchant: &str, code: &str, amount: &str) -> NewEntry {
    entry(id, merchant, code, EntryKind::Capture, amount, "")
}

/// `per_merchant` captures in EUR for each of so many merchants, 1.00 each with a fee of 0.01.
pub fn bulk(prefix: &str, merchants: usize, per_merchant: usize) -> Vec<NewEntry> {
    (0..merchants * per_merchant)
        .map(|n| {
            let merchant = format!("m{:05}", n / per_merchant);
            entry(&format!("{prefix}{n}"), &merchant, "EUR", EntryKind::Capture, "1.00", "0.01")
        })
        .collect()
}

//! Sums over parsed entries, for the record of an import and for a look before it. Wide, so that no file overflows them.

use std::collections::BTreeMap;

use crate::domain::entry::{EntryKind, NewEntry};
use crate::domain::money::Currency;

/// Sums over some entries of one currency, in minor units.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sums {
    /// Entries.
    pub rows: u64,
    /// The sum of amounts.
    pub amount: i128,
    /// The sum of fees.
    pub fee: i128,
}

impl Sums {
    fn add(&mut self, entry: &NewEntry) {
        self.rows += 1;
        self.amount += i128::from(entry.amount);
        self.fee += i128::from(entry.fee);
    }
}

/// Sums per currency.
#[must_use]
pub fn by_currency<'a>(entries: impl IntoIterator<Item = &'a NewEntry>) -> BTreeMap<Currency, Sums> {
    let mut sums: BTreeMap<Currency, Sums> = BTreeMap::new();
    for entry in entries {
        sums.entry(entry.currency).or_default().add(entry);
    }
    sums
}

/// Sums per merchant, currency and kind.
#[must_use]
pub fn by_merchant<'a>(
    entries: impl IntoIterator<Item = &'a NewEntry>,
) -> BTreeMap<(&'a str, Currency, EntryKind), Sums> {
    let mut sums: BTreeMap<(&str, Currency, EntryKind), Sums> = BTreeMap::new();
    for entry in entries {
        sums.entry((&entry.merchant, entry.currency, entry.kind)).or_default().add(entry);
    }
    sums
}

//! What runs of a ledger job would take of what is open now; asked before anything is done.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::domain::money::Currency;

/// One currency of one run to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreviewLine {
    /// Which cutoff, from 0: each run takes what is available before its own and was not before an earlier one.
    pub cutoff: usize,
    /// ISO 4217.
    pub currency: String,
    /// Merchants that would get a unit.
    pub units: u64,
    /// Open entries of theirs.
    pub entries: u64,
    /// Of their amounts, major units as text.
    pub amount: String,
    /// Of their fees, major units as text.
    pub fees: String,
    /// Units whose net would be paid; the others are carried, or are zero.
    pub payouts: u64,
    /// Of those nets, major units as text.
    pub paid: String,
}

/// Adds up what each merchant's unit would come to, for stores that do not.
#[derive(Debug, Default)]
pub(super) struct Previewed(BTreeMap<(usize, String), (Currency, Sums)>);

#[derive(Debug, Default)]
struct Sums {
    units: u64,
    entries: u64,
    amount: i128,
    fees: i128,
    payouts: u64,
    paid: i128,
}

impl Previewed {
    /// Adds the open entries of one merchant.
    pub(super) fn add(
        &mut self,
        cutoff: usize,
        currency: Currency,
        entries: u64,
        (amount, fees): (i128, i128),
        minimum: i64,
    ) {
        let key = (cutoff, currency.code().to_owned());
        let (_, sums) = self.0.entry(key).or_insert_with(|| (currency, Sums::default()));
        sums.units += 1;
        sums.entries += entries;
        sums.amount += amount;
        sums.fees += fees;
        let net = amount - fees;
        if net > 0 && net >= i128::from(minimum) {
            sums.payouts += 1;
            sums.paid += net;
        }
    }

    /// By cutoff and currency.
    pub(super) fn lines(self) -> Vec<PreviewLine> {
        let line = |((cutoff, code), (currency, sums)): ((usize, String), (Currency, Sums))| PreviewLine {
            cutoff,
            currency: code,
            units: sums.units,
            entries: sums.entries,
            amount: currency.format(sums.amount),
            fees: currency.format(sums.fees),
            payouts: sums.payouts,
            paid: currency.format(sums.paid),
        };
        self.0.into_iter().map(line).collect()
    }
}

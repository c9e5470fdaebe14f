//! The report of a run: per currency what was brought in, what became of it, and whether it adds up to the last minor unit.
//!
//! What belongs to a run: the entries that its units bound (they are bound for ever), the instructions of those units, and
//! the carries that came of them: what a unit did not pay out, and what a rejected or returned payout gave back, whenever
//! that was. So the figures of a run change only while its payouts do, and the carries of a job's runs follow from one another.
//!
//! Invariant: every figure is read from the rows that it is about, and compared with those that were written beside them
//! (nets of units, journal): what differs is said. Sums are wide and never leave whole minor units.

use std::collections::BTreeMap;

use chrono::{DateTime, NaiveDate, Utc};
use serde::{Deserialize, Serialize};

use super::RunSummary;
use crate::domain::instruction::InstructionState;
use crate::domain::money::Currency;

/// The most payouts of one run that a report lists; the others are counted.
pub const PAYOUTS_REPORTED: u32 = 1_000_000;

/// One run with its roll-forward.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunReport {
    /// The run.
    pub run: RunSummary,
    /// Entries available before it are in.
    pub cutoff_at: DateTime<Utc>,
    /// The day on which its money counts.
    pub value_date: NaiveDate,
    /// Per currency, in the order of codes.
    pub currencies: Vec<RollForward>,
    /// Its payouts, in the order in which they were written.
    pub payouts: Vec<ReportedPayout>,
    /// Payouts beyond [`PAYOUTS_REPORTED`].
    pub payouts_left_out: u64,
}

impl RunReport {
    /// Whether everything agrees.
    #[must_use]
    pub fn is_balanced(&self) -> bool {
        self.currencies.iter().all(|currency| currency.differences.is_empty())
    }
}

/// One currency of a run: `brought_forward + imported - fees - paid - in_flight = carried_forward`. Major units as text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RollForward {
    /// ISO 4217.
    pub currency: String,
    /// Carries of earlier runs of the job that this run's units took.
    pub brought_forward: String,
    /// Amounts of the other entries that its units took, opposites of reverted imports included.
    pub imported: String,
    /// Fees of those entries.
    pub fees: String,
    /// Payouts that are paid.
    pub paid: String,
    /// Payouts that are not final: pending, sending, unknown or held.
    pub in_flight: String,
    /// Carries that came of it: the three below.
    pub carried_forward: String,
    /// Nets that were negative or below the minimum.
    pub carried: String,
    /// Nets of rejected payouts.
    pub rejected: String,
    /// Nets of payouts that the bank sent back.
    pub returned: String,
    /// What of those carries no later run has taken yet.
    pub still_open: String,
    /// What does not agree; empty where everything does.
    pub differences: Vec<String>,
}

/// One payout of a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedPayout {
    /// The idempotency key.
    pub key: String,
    /// Who is paid.
    pub merchant: String,
    /// Major units as text.
    pub amount: String,
    /// ISO 4217.
    pub currency: String,
    /// The day on which the money counts.
    pub value_date: Option<NaiveDate>,
    /// The receiver's, or an operator's, own name for it.
    pub reference: Option<String>,
    /// The bank's name for the return of what was paid.
    pub return_reference: Option<String>,
    /// Its state.
    pub state: InstructionState,
    /// Why it is held.
    pub reason: Option<String>,
}

/// What a sum of a run is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    BroughtForward,
    Imported,
    Fees,
    Nets,
    Paid,
    InFlight,
    /// Payouts in that state, by their instructions.
    RejectedPayouts,
    ReturnedPayouts,
    /// Carries in the store, by what they came of.
    Carried,
    Rejected,
    Returned,
    StillOpen,
    /// Balances of the run's journals, credits above 0.
    SourceClearing,
    Payable,
    FeesAccount,
    CarryAccount,
    PayoutClearing,
    Bank,
}

impl Part {
    /// The name in the stores' statements.
    pub(super) fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "brought_forward" => Self::BroughtForward,
            "imported" => Self::Imported,
            "fees" => Self::Fees,
            "nets" => Self::Nets,
            "paid_payouts" => Self::Paid,
            "in_flight_payouts" => Self::InFlight,
            "rejected_payouts" => Self::RejectedPayouts,
            "returned_payouts" => Self::ReturnedPayouts,
            "carry" => Self::Carried,
            "rejected" => Self::Rejected,
            "returned" => Self::Returned,
            "still_open" => Self::StillOpen,
            "account:source_clearing" => Self::SourceClearing,
            "account:payable" => Self::Payable,
            "account:fees" => Self::FeesAccount,
            "account:carry" => Self::CarryAccount,
            "account:payout_clearing" => Self::PayoutClearing,
            "account:bank" => Self::Bank,
            _ => return None,
        })
    }
}

/// The sums of a run by currency and part, minor units.
#[derive(Debug, Default)]
pub(super) struct Sums(BTreeMap<Currency, BTreeMap<Part, i128>>);

impl Sums {
    /// Adds to one sum.
    pub(super) fn add(&mut self, currency: Currency, part: Part, amount: i128) {
        *self.0.entry(currency).or_default().entry(part).or_default() += amount;
    }

    /// What follows, in the order of codes.
    pub(super) fn roll_forward(&self) -> Vec<RollForward> {
        self.0.iter().map(|(currency, parts)| roll(*currency, parts)).collect()
    }
}

fn roll(currency: Currency, parts: &BTreeMap<Part, i128>) -> RollForward {
    let of = |part: Part| parts.get(&part).copied().unwrap_or(0);
    let carried_forward = of(Part::Carried) + of(Part::Rejected) + of(Part::Returned);
    let netted = of(Part::BroughtForward) + of(Part::Imported) - of(Part::Fees);
    let left = netted - of(Part::Paid) - of(Part::InFlight);
    let mut differences = Vec::new();
    let mut compare = |what: &str, is: i128, against: &str, should: i128| {
        if is != should {
            let (is, should) = (currency.format(is), currency.format(should));
            differences.push(format!("{what} is {is}, {against} {should}"));
        }
    };
    compare("brought forward + imported - fees - paid - in flight", left, "carried forward", carried_forward);
    compare("brought forward + imported - fees", netted, "the nets of the units", of(Part::Nets));
    compare("imported", of(Part::Imported), "the journal's source clearing", -of(Part::SourceClearing));
    compare("fees", of(Part::Fees), "the journal's fees", of(Part::FeesAccount));
    compare("paid", of(Part::Paid), "the journal's bank", of(Part::Bank));
    compare("in flight", of(Part::InFlight), "the journal's payout clearing", of(Part::PayoutClearing));
    let change = carried_forward - of(Part::BroughtForward);
    compare("carried forward - brought forward", change, "the journal's carry", of(Part::CarryAccount));
    compare("the journal's payable", of(Part::Payable), "expected", 0);
    compare("the rejected payouts", of(Part::RejectedPayouts), "their carries", of(Part::Rejected));
    compare("the returned payouts", of(Part::ReturnedPayouts), "their carries", of(Part::Returned));
    RollForward {
        currency: currency.code().to_owned(),
        brought_forward: currency.format(of(Part::BroughtForward)),
        imported: currency.format(of(Part::Imported)),
        fees: currency.format(of(Part::Fees)),
        paid: currency.format(of(Part::Paid)),
        in_flight: currency.format(of(Part::InFlight)),
        carried_forward: currency.format(carried_forward),
        carried: currency.format(of(Part::Carried)),
        rejected: currency.format(of(Part::Rejected)),
        returned: currency.format(of(Part::Returned)),
        still_open: currency.format(of(Part::StillOpen)),
        differences,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(parts: &[(Part, i128)]) -> Sums {
        let mut sums = Sums::default();
        for (part, amount) in parts {
            sums.add(Currency::new("JPY").expect("a currency"), *part, *amount);
        }
        sums
    }

    /// 11050 less 150 of fees with 100 owed from before: 10800 paid.
    const WHOLE: [(Part, i128); 9] = [
        (Part::BroughtForward, -100),
        (Part::Imported, 11_050),
        (Part::Fees, 150),
        (Part::Nets, 10_800),
        (Part::Paid, 10_800),
        (Part::SourceClearing, -11_050),
        (Part::FeesAccount, 150),
        (Part::Bank, 10_800),
        (Part::CarryAccount, 100),
    ];

    #[test]
    fn what_adds_up_is_said_to_and_a_minor_unit_too_much_anywhere_is_seen() {
        let whole = sums(&WHOLE).roll_forward();
        assert_eq!((whole.len(), whole[0].differences.as_slice()), (1, [].as_slice()));
        assert_eq!((whole[0].paid.as_str(), whole[0].carried_forward.as_str()), ("10800", "0"));
        for part in WHOLE.map(|(part, _)| part).into_iter().chain([
            Part::InFlight,
            Part::Carried,
            Part::Rejected,
            Part::Returned,
            Part::RejectedPayouts,
            Part::ReturnedPayouts,
            Part::Payable,
            Part::PayoutClearing,
        ]) {
            let mut more = sums(&WHOLE);
            more.add(Currency::new("JPY").expect("a currency"), part, 1);
            assert!(!more.roll_forward()[0].differences.is_empty(), "{part:?}");
        }
    }
}

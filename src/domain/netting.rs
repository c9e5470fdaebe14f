//! Netting: from the sums over what one unit has bound to its verdict and its postings.
//!
//! Invariants: the payable account of the merchant is 0 after the postings; every line moves a positive amount from a
//! debit to a credit account, so a journal is balanced by construction; sums that leave the 64-bit range settle nothing.
//! Deliberately absent: rounding, conversion, any computed fee.

use super::money::Currency;
use super::{JobName, unit::UnitState};

/// The sums over the entries that one unit bound, in minor units. Wide, because a database sums wider than 64 bits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BoundSums {
    /// Entries bound, carries included.
    pub entries: u64,
    /// Per source, the sum of amounts, carries excluded.
    pub amounts: Vec<(String, i128)>,
    /// The sum of fees.
    pub fees: i128,
    /// The sum of carries from earlier runs of the job.
    pub carried_in: i128,
}

/// An account of the double-entry ledger, within one currency.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Account {
    /// What a source says it holds for merchants.
    SourceClearing(String),
    /// What is owed to a merchant. 0 after every unit.
    Payable(String),
    /// Fees taken.
    Fees,
    /// What a job carries forward for a merchant; equals its open carry entries.
    Carry(JobName, String),
    /// Payouts written and not final.
    PayoutClearing,
    /// What has left.
    Bank,
}

impl Account {
    /// The kind as stored.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::SourceClearing(_) => "source_clearing",
            Self::Payable(_) => "payable",
            Self::Fees => "fees",
            Self::Carry(..) => "carry",
            Self::PayoutClearing => "payout_clearing",
            Self::Bank => "bank",
        }
    }

    /// The owner as stored; for a carry `job/merchant` (a job name holds no `/`). Empty where there is none.
    #[must_use]
    pub fn owner(&self) -> String {
        match self {
            Self::SourceClearing(owner) | Self::Payable(owner) => owner.clone(),
            Self::Carry(job, merchant) => format!("{job}/{merchant}"),
            Self::Fees | Self::PayoutClearing | Self::Bank => String::new(),
        }
    }
}

/// One line of a journal: `amount` (minor units, above 0) is debited to one account and credited to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Posting {
    /// Debited.
    pub debit: Account,
    /// Credited.
    pub credit: Account,
    /// Minor units, above 0.
    pub amount: i64,
}

/// What becomes of one unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing was bound.
    Empty,
    /// Netted to `net`, at least 0; above 0 an instruction over exactly that is written.
    Settled {
        /// Minor units.
        net: i64,
        /// Its journal.
        postings: Vec<Posting>,
    },
    /// The net is below 0 or below the minimum: it becomes a carry entry of the job.
    Carried {
        /// Minor units, not 0.
        net: i64,
        /// Its journal.
        postings: Vec<Posting>,
    },
    /// A sum left the 64-bit range: nothing may be committed, the unit is set aside alone.
    OutOfRange,
}

impl Verdict {
    /// The state that the unit ends in.
    #[must_use]
    pub const fn state(&self) -> UnitState {
        match self {
            Self::Empty => UnitState::Empty,
            Self::Settled { .. } => UnitState::Settled,
            Self::Carried { .. } => UnitState::Carried,
            Self::OutOfRange => UnitState::SetAside,
        }
    }
}

/// A line from `from` to `to`, turned round where the amount is negative; none for 0.
fn line(from: Account, to: Account, amount: i64) -> Option<Posting> {
    match amount {
        0 => None,
        1.. => Some(Posting { debit: from, credit: to, amount }),
        _ => amount.checked_neg().map(|amount| Posting { debit: to, credit: from, amount }),
    }
}

/// Nets one unit. `minimum` is the job's minimum payout in the unit's currency, in minor units (0: none).
#[must_use]
pub fn net(job: &JobName, merchant: &str, _currency: Currency, sums: &BoundSums, minimum: i64) -> Verdict {
    if sums.entries == 0 {
        return Verdict::Empty;
    }
    // The range excludes i64::MIN, so that every amount has its opposite.
    let fit = |wide: i128| i64::try_from(wide).ok().filter(|narrow| *narrow != i64::MIN);
    let payable = || Account::Payable(merchant.to_owned());
    let mut postings = Vec::with_capacity(sums.amounts.len() + 3);
    let mut total: i128 = sums.carried_in - sums.fees;
    for (source, amount) in &sums.amounts {
        total += amount;
        let Some(amount) = fit(*amount) else { return Verdict::OutOfRange };
        postings.extend(line(Account::SourceClearing(source.clone()), payable(), amount));
    }
    let (Some(fees), Some(carried_in), Some(net)) = (fit(sums.fees), fit(sums.carried_in), fit(total)) else {
        return Verdict::OutOfRange;
    };
    let carry = || Account::Carry(job.clone(), merchant.to_owned());
    postings.extend(line(payable(), Account::Fees, fees));
    postings.extend(line(carry(), payable(), carried_in));
    if net == 0 || (net > 0 && net >= minimum) {
        postings.extend(line(payable(), Account::PayoutClearing, net));
        Verdict::Settled { net, postings }
    } else {
        postings.extend(line(payable(), carry(), net));
        Verdict::Carried { net, postings }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn job() -> JobName {
        JobName::new("daily").expect("valid")
    }

    fn eur() -> Currency {
        Currency::new("EUR").expect("valid")
    }

    fn sums(amount: i128, fees: i128, carried_in: i128) -> BoundSums {
        BoundSums { entries: 2, amounts: vec![("adyen".into(), amount)], fees, carried_in }
    }

    fn balance(postings: &[Posting], of: &Account) -> i128 {
        postings.iter().fold(0, |sum, p| {
            let credit = if p.credit == *of { i128::from(p.amount) } else { 0 };
            let debit = if p.debit == *of { i128::from(p.amount) } else { 0 };
            sum + credit - debit
        })
    }

    #[test]
    fn a_positive_net_is_paid_and_a_negative_one_carried() {
        assert!(matches!(net(&job(), "m", eur(), &sums(11050, 150, 0), 100), Verdict::Settled { net: 10900, .. }));
        assert!(matches!(net(&job(), "m", eur(), &sums(-2500, 0, 0), 0), Verdict::Carried { net: -2500, .. }));
        assert!(matches!(net(&job(), "m", eur(), &sums(10000, 0, -2500), 0), Verdict::Settled { net: 7500, .. }));
        assert!(matches!(net(&job(), "m", eur(), &sums(99, 0, 0), 100), Verdict::Carried { net: 99, .. }));
        assert!(matches!(net(&job(), "m", eur(), &sums(100, 0, 0), 100), Verdict::Settled { net: 100, .. }));
        assert!(matches!(net(&job(), "m", eur(), &sums(100, 100, 0), 100), Verdict::Settled { net: 0, .. }));
        assert_eq!(net(&job(), "m", eur(), &BoundSums::default(), 0), Verdict::Empty);
    }

    #[test]
    fn sums_beyond_the_range_settle_nothing() {
        let max = i128::from(i64::MAX);
        assert_eq!(net(&job(), "m", eur(), &sums(max + 1, 0, 0), 0), Verdict::OutOfRange);
        assert_eq!(net(&job(), "m", eur(), &sums(max, -1, 0), 0), Verdict::OutOfRange);
        assert_eq!(net(&job(), "m", eur(), &sums(i128::from(i64::MIN), 0, 0), 0), Verdict::OutOfRange);
        assert!(matches!(net(&job(), "m", eur(), &sums(max, 0, 0), 0), Verdict::Settled { net: i64::MAX, .. }));
    }

    proptest! {
        #[test]
        fn payable_is_zero_after_every_unit(amount in -1000i128..1000, fees in -100i128..100, carry in -500i128..500, minimum in 0i64..200) {
            let verdict = net(&job(), "m", eur(), &sums(amount, fees, carry), minimum);
            let (net, postings) = match verdict {
                Verdict::Settled { net, postings } | Verdict::Carried { net, postings } => (net, postings),
                Verdict::Empty | Verdict::OutOfRange => panic!("not expected: {verdict:?}"),
            };
            prop_assert_eq!(i128::from(net), amount - fees + carry);
            prop_assert_eq!(balance(&postings, &Account::Payable("m".into())), 0);
            prop_assert!(postings.iter().all(|p| p.amount > 0 && p.debit != p.credit));
        }
    }
}

//! A statement's lines against payouts. Pure.
//!
//! A line is a payout's by its key; without one, or with one that is not ours, by its reference where that is one payout's (or
//! one's of that amount), or by the reference of its return. A payout is one line's: another line for it is a payment too many.

use std::collections::HashMap;

use chrono::NaiveDate;
use serde::Serialize;

use crate::domain::instruction::InstructionState;
use crate::ingest::StatementLine;
use crate::store::ReportedPayout;

/// What a line, or a payout without one, comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Verdict {
    /// The same payment on both sides.
    Matched,
    /// The same payment with another amount or currency.
    AmountDiffers,
    /// The bank paid what is not paid with us.
    NotPaid,
    /// An earlier line is the same payment.
    Twice,
    /// The reference is that of several payouts.
    Ambiguous,
    /// No payout of ours.
    Unknown,
    /// Paid by us, and in no line.
    Missing,
}

impl Verdict {
    pub(super) const ALL: [Self; 7] =
        [Self::Matched, Self::AmountDiffers, Self::NotPaid, Self::Twice, Self::Ambiguous, Self::Unknown, Self::Missing];

    /// In words.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Matched => "matched",
            Self::AmountDiffers => "amount differs",
            Self::NotPaid => "not paid with us",
            Self::Twice => "paid twice",
            Self::Ambiguous => "reference of several",
            Self::Unknown => "unknown to us",
            Self::Missing => "not in the statement",
        }
    }
}

/// One line of the answer. Money as text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    pub(super) verdict: Verdict,
    /// In the file; none for what is not in it.
    pub(super) line: Option<u64>,
    pub(super) stated: Option<Stated>,
    pub(super) ours: Option<ReportedPayout>,
    /// What is no disagreement and worth knowing.
    pub(super) note: Option<String>,
}

/// What the bank says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Stated {
    pub(super) key: Option<String>,
    pub(super) reference: Option<String>,
    pub(super) amount: String,
    pub(super) currency: String,
    pub(super) value_date: NaiveDate,
}

impl Stated {
    fn of(line: &StatementLine) -> Self {
        Self {
            key: line.key.clone(),
            reference: line.reference.clone(),
            amount: line.currency.format(line.amount),
            currency: line.currency.code().to_owned(),
            value_date: line.value_date,
        }
    }

    fn is_of(&self, payout: &ReportedPayout) -> bool {
        self.amount == payout.amount && self.currency == payout.currency
    }
}

/// Whether the bank has paid it, as far as we know.
const fn was_paid(state: InstructionState) -> bool {
    match state {
        InstructionState::Paid | InstructionState::Returned => true,
        InstructionState::Pending
        | InstructionState::Sending
        | InstructionState::Unknown
        | InstructionState::Rejected
        | InstructionState::Held => false,
    }
}

/// Every line in its order, then what was paid in these days and is in none.
pub(super) fn compare(
    lines: &[StatementLine],
    payouts: &[ReportedPayout],
    (from, to): (NaiveDate, NaiveDate),
) -> Vec<Finding> {
    let mut by_key: HashMap<&str, usize> = HashMap::with_capacity(payouts.len());
    let mut by_reference: HashMap<&str, Vec<usize>> = HashMap::new();
    let mut by_return: HashMap<&str, usize> = HashMap::new();
    for (n, payout) in payouts.iter().enumerate() {
        by_key.insert(&payout.key, n);
        if let Some(reference) = &payout.reference {
            by_reference.entry(reference).or_default().push(n);
        }
        if let Some(reference) = &payout.return_reference {
            by_return.insert(reference, n);
        }
    }
    let mut taken = vec![None; payouts.len()];
    let mut found = Vec::with_capacity(lines.len());
    for line in lines {
        let stated = Stated::of(line);
        let own = stated.key.as_deref().and_then(|key| by_key.get(key).copied());
        let named = stated.reference.as_deref().and_then(|reference| by_reference.get(reference));
        let returned = stated.reference.as_deref().and_then(|reference| by_return.get(reference));
        // A bank may name the payment's key with its return.
        if let (None, Some(n)) = (named, returned)
            && own.is_none_or(|own| own == *n)
        {
            // Not the payment itself, which has a line of its own.
            let ours = &payouts[*n];
            let verdict = if stated.is_of(ours) { Verdict::Matched } else { Verdict::AmountDiffers };
            let (ours, note) = (Some(ours.clone()), Some("the bank's return of it".to_owned()));
            found.push(Finding { verdict, line: Some(line.line), stated: Some(stated), ours, note });
            continue;
        }
        let which = match (own, named.map(Vec::as_slice)) {
            (Some(n), _) => Ok(n),
            (None, None | Some([])) => Err(Verdict::Unknown),
            (None, Some([n])) => Ok(*n),
            (None, Some(several)) => {
                let fit = |n: &&usize| taken[**n].is_none() && stated.is_of(&payouts[**n]);
                several.iter().find(fit).copied().ok_or(Verdict::Ambiguous)
            }
        };
        found.push(match which {
            Err(verdict) => Finding { verdict, line: Some(line.line), stated: Some(stated), ours: None, note: None },
            Ok(n) => {
                let (verdict, note) = verdict_on(&stated, &payouts[n], taken[n]);
                taken[n].get_or_insert(line.line);
                Finding { verdict, line: Some(line.line), stated: Some(stated), ours: Some(payouts[n].clone()), note }
            }
        });
    }
    let in_days = |payout: &ReportedPayout| payout.value_date.is_some_and(|day| (from..=to).contains(&day));
    for (payout, taken) in payouts.iter().zip(taken) {
        if taken.is_none() && was_paid(payout.state) && in_days(payout) {
            let (verdict, ours) = (Verdict::Missing, Some(payout.clone()));
            found.push(Finding { verdict, line: None, stated: None, ours, note: None });
        }
    }
    found
}

fn verdict_on(stated: &Stated, payout: &ReportedPayout, earlier: Option<u64>) -> (Verdict, Option<String>) {
    if let Some(line) = earlier {
        return (Verdict::Twice, Some(format!("line {line} is the same payment")));
    }
    if !stated.is_of(payout) {
        return (Verdict::AmountDiffers, None);
    }
    if !was_paid(payout.state) {
        return (Verdict::NotPaid, Some(format!("it is {}", payout.state.as_str())));
    }
    let mut notes = Vec::new();
    if let Some(day) = payout.value_date.filter(|day| *day != stated.value_date) {
        notes.push(format!("value date {day} with us"));
    }
    if payout.state == InstructionState::Returned {
        notes.push("the bank sent it back since".to_owned());
    }
    (Verdict::Matched, Some(notes.join("; ")).filter(|notes| !notes.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::money::Currency;

    fn payout(key: &str, reference: &str, amount: &str, state: InstructionState, day: u32) -> ReportedPayout {
        ReportedPayout {
            return_reference: None,
            key: key.to_owned(),
            merchant: "m".to_owned(),
            amount: amount.to_owned(),
            currency: "JPY".to_owned(),
            value_date: NaiveDate::from_ymd_opt(2027, 1, day),
            reference: Some(reference.to_owned()).filter(|text| !text.is_empty()),
            state,
            reason: None,
        }
    }

    fn line(line: u64, key: &str, reference: &str, amount: i64) -> StatementLine {
        let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        StatementLine {
            line,
            key: text(key),
            reference: text(reference),
            amount,
            currency: Currency::new("JPY").expect("a currency"),
            value_date: NaiveDate::from_ymd_opt(2027, 1, 4).expect("a day"),
        }
    }

    #[test]
    fn each_line_and_each_payout_without_one_has_its_verdict() {
        use InstructionState::{Held, Paid, Returned};
        let payouts = [
            payout("b1", "R1", "10900", Paid, 4),
            payout("b2", "R2", "1", Paid, 3),
            payout("b3", "", "7", Held, 4),
            ReportedPayout { return_reference: Some("RET4".to_owned()), ..payout("b4", "R4", "8", Returned, 4) },
            payout("b5", "SUM", "5", Paid, 4),
            payout("b6", "SUM", "6", Paid, 4),
            payout("b7", "R7", "7", Paid, 4),
            payout("b8", "R8", "8", Paid, 5),
            ReportedPayout { return_reference: Some("RET9".to_owned()), ..payout("b9", "R9", "8", Returned, 4) },
        ];
        let lines = [
            line(2, "b1", "", 10_900),
            line(3, "", "R2", 2),
            line(4, "b3", "X", 7),
            line(5, "other", "R4", 8),
            line(6, "b1", "", 10_900),
            line(7, "", "SUM", 6),
            line(8, "", "SUM", 5),
            line(9, "", "SUM", 9),
            line(10, "b0", "R0", 1),
            line(11, "", "RET4", 8),
            // With the key of the payment: it neither stands for that nor is a second one.
            line(12, "b9", "RET9", 8),
        ];
        let day = NaiveDate::from_ymd_opt(2027, 1, 4).expect("a day");
        let found = compare(&lines, &payouts, (day, day));
        let verdicts: Vec<_> = found
            .iter()
            .map(|finding| (finding.verdict, finding.ours.as_ref().map(|payout| payout.key.as_str())))
            .collect();
        let expected = [
            (Verdict::Matched, Some("b1")),
            (Verdict::AmountDiffers, Some("b2")),
            (Verdict::NotPaid, Some("b3")),
            (Verdict::Matched, Some("b4")),
            (Verdict::Twice, Some("b1")),
            (Verdict::Matched, Some("b6")),
            (Verdict::Matched, Some("b5")),
            (Verdict::Ambiguous, None),
            (Verdict::Unknown, None),
            (Verdict::Matched, Some("b4")),
            (Verdict::Matched, Some("b9")),
            (Verdict::Missing, Some("b7")),
            (Verdict::Missing, Some("b9")),
        ];
        assert_eq!(verdicts, expected);
        assert_eq!(found[3].note.as_deref(), Some("the bank sent it back since"));
        for of in [9, 10] {
            assert_eq!(found[of].note.as_deref(), Some("the bank's return of it"));
        }
    }
}

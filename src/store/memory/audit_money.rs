//! The audit's checks of money: effects, nets and accounts, summed anew from entries and postings.

use std::collections::BTreeMap;

use super::audit::Violations;
use super::rows::{Entry, Instruction, Journal, JournalKind, Unit};
use super::state::MemoryState;
use crate::domain::entry::{EntryKind, OWN_SOURCE};
use crate::domain::instruction::{InstructionKind, InstructionState};
use crate::domain::money::Currency;
use crate::domain::netting::Account;
use crate::domain::unit::UnitState;

/// Sums with signs per account: credits above 0, debits below. As kind and owner, as accounts are stored.
fn lines<'a>(journals: impl Iterator<Item = &'a Journal>) -> BTreeMap<(&'static str, String, Currency), i128> {
    let mut sums = BTreeMap::new();
    for journal in journals {
        for posting in &journal.postings {
            let mut add = |account: &Account, amount: i128| {
                *sums.entry((account.kind(), account.owner(), journal.currency)).or_insert(0) += amount;
            };
            add(&posting.debit, -i128::from(posting.amount));
            add(&posting.credit, i128::from(posting.amount));
        }
    }
    sums
}

/// Whether a carry is what the net of a unit was; any other came back of a payout.
pub(super) fn is_of_unit(carry: &Entry) -> bool {
    carry.new.id.starts_with("carry:")
}

impl MemoryState {
    /// Carries that bursar wrote, which is all.
    pub(super) fn own_carries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values().filter(|entry| entry.source == OWN_SOURCE && entry.new.kind == EntryKind::Carry)
    }

    /// Those of its settling; what came of its payout has others.
    fn journals_of<'a>(&'a self, unit: &'a Unit) -> impl Iterator<Item = &'a Journal> {
        self.journals.iter().filter(|journal| {
            journal.unit_id == unit.id && journal.generation == unit.generation && journal.kind == JournalKind::Settle
        })
    }

    fn instructions_of<'a>(&'a self, unit: &'a Unit) -> impl Iterator<Item = &'a Instruction> {
        self.instructions.values().filter(|found| found.unit_id == unit.id && found.generation == unit.generation)
    }

    pub(super) fn settled_has_its_effect(&self) -> Violations {
        let mut bad = Vec::new();
        for unit in self.units.values().filter(|unit| unit.state == UnitState::Settled) {
            let calls = self.instructions_of(unit).filter(|found| found.kind == InstructionKind::Call);
            if calls.into_iter().any(|call| call.state != InstructionState::Paid) {
                bad.push(format!("unit {} is settled, its call is not done", unit.key));
            }
            let Some((currency, merchant)) = &unit.ledger else { continue };
            let net = unit.net.unwrap_or(-1);
            let payouts: Vec<_> = self.instructions_of(unit).filter_map(|found| found.payout.clone()).collect();
            let expected = if net > 0 { vec![(merchant.clone(), *currency, net)] } else { Vec::new() };
            if net < 0 || payouts != expected || self.journals_of(unit).count() != 1 {
                bad.push(format!("unit {}: net {:?}, {} payouts", unit.key, unit.net, payouts.len()));
            }
        }
        bad
    }

    pub(super) fn unended_has_no_effect(&self) -> Violations {
        let mut bad = Vec::new();
        for unit in self.units.values() {
            let pending = match unit.state {
                UnitState::Pending => true,
                UnitState::SetAside => false,
                UnitState::Settled | UnitState::Carried | UnitState::Empty => continue,
            };
            let effect = self.instructions_of(unit).any(|found| match (found.kind, found.state) {
                (InstructionKind::Payout, _) | (InstructionKind::Call, InstructionState::Paid) => true,
                (
                    InstructionKind::Call,
                    InstructionState::Held | InstructionState::Rejected | InstructionState::Returned,
                ) => pending,
                (
                    InstructionKind::Call,
                    InstructionState::Pending | InstructionState::Sending | InstructionState::Unknown,
                ) => false,
            });
            if effect || self.journals_of(unit).next().is_some() {
                bad.push(format!("unit {} is {} and has an effect", unit.key, unit.state.as_str()));
            }
        }
        bad
    }

    pub(super) fn carried_has_its_carry(&self) -> Violations {
        let mut carries: BTreeMap<&str, Vec<_>> = BTreeMap::new();
        for entry in self.own_carries().filter(|entry| is_of_unit(entry)) {
            let what = (entry.new.amount, entry.new.currency, entry.new.merchant.as_str(), entry.job_id);
            carries.entry(&entry.new.id).or_default().push(what);
        }
        let mut bad = Vec::new();
        for unit in self.units.values().filter(|unit| unit.state == UnitState::Carried) {
            let found = carries.remove(format!("carry:{}:{}", unit.id, unit.generation).as_str()).unwrap_or_default();
            let job = self.runs.get(&unit.run_id).map(|run| run.job_id);
            let expected = unit.ledger.as_ref().zip(unit.net);
            let expected: Vec<_> = expected
                .map(|((currency, merchant), net)| (net, *currency, merchant.as_str(), job))
                .into_iter()
                .collect();
            let posted = self.journals_of(unit).count() == 1;
            if found != expected || !posted || self.instructions_of(unit).next().is_some() {
                bad.push(format!("unit {}: net {:?}, {} carries", unit.key, unit.net, found.len()));
            }
        }
        bad.extend(carries.keys().map(|id| format!("{id} is a carry of no unit")));
        bad
    }

    pub(super) fn entries_have_one_home(&self) -> Violations {
        let mut bad = Vec::new();
        let mut standing = BTreeMap::new();
        for entry in self.entries.values() {
            if entry.stands() {
                *standing.entry((&entry.source, &entry.new.id)).or_insert(0) += 1;
            }
            let Some(unit) = entry.unit_id else { continue };
            let found = self.units.get(&unit);
            let home = found.is_some_and(|unit| {
                let of_job = self.runs.get(&unit.run_id).map(|run| run.job_id);
                unit.ledger.as_ref() == Some(&(entry.new.currency, entry.new.merchant.clone()))
                    && [UnitState::Settled, UnitState::Carried].contains(&unit.state)
                    && (entry.job_id.is_none() || entry.job_id == of_job)
            });
            if !home || entry.withdrawn_at.is_some() {
                bad.push(format!(
                    "entry {}/{} is bound to unit {unit}, which is not its home",
                    entry.source, entry.new.id
                ));
            }
        }
        bad.extend(standing.iter().filter(|(_, count)| **count > 1).map(|(id, _)| format!("{id:?} stands twice")));
        for unit in self.units.values().filter(|unit| unit.state == UnitState::Empty) {
            // A call of which a person said that nothing was done leaves its unit empty, and is no effect.
            let undone =
                |found: &Instruction| found.kind == InstructionKind::Call && found.state == InstructionState::Rejected;
            if self.journals_of(unit).next().is_some() || !self.instructions_of(unit).all(undone) {
                bad.push(format!("unit {} is empty and has an effect", unit.key));
            }
        }
        bad
    }

    pub(super) fn nets_follow_from_entries(&self) -> Violations {
        let mut bad = Vec::new();
        let ended = |unit: &&Unit| [UnitState::Settled, UnitState::Carried].contains(&unit.state);
        for unit in self.units.values().filter(ended) {
            let Some(((currency, merchant), run)) = unit.ledger.as_ref().zip(self.runs.get(&unit.run_id)) else {
                continue;
            };
            let carry = (Account::Carry(run.job.clone(), merchant.clone()), Account::PayoutClearing);
            let mut expected: BTreeMap<(&'static str, String, Currency), i128> = BTreeMap::new();
            let mut add = |account: &Account, amount: i128| {
                *expected.entry((account.kind(), account.owner(), *currency)).or_insert(0) += amount;
            };
            let mut net = 0;
            for entry in self.entries.values().filter(|entry| entry.unit_id == Some(unit.id)) {
                let (amount, fee) = (i128::from(entry.new.amount), i128::from(entry.new.fee));
                net += amount - fee;
                if entry.new.kind == EntryKind::Carry {
                    add(&carry.0, -amount);
                } else {
                    add(&Account::SourceClearing(entry.source.clone()), -amount);
                }
                add(&Account::Fees, fee);
            }
            add(if unit.state == UnitState::Carried { &carry.0 } else { &carry.1 }, net);
            expected.retain(|_, sum| *sum != 0);
            let mut posted = lines(self.journals_of(unit));
            posted.retain(|(kind, _, _), sum| *sum != 0 && *kind != "payable");
            if unit.net.map(i128::from) != Some(net) || posted != expected {
                bad.push(format!("unit {}: net {:?}, its entries come to {net}", unit.key, unit.net));
            }
        }
        bad
    }

    pub(super) fn payable_is_zero(&self) -> Violations {
        let mut bad = Vec::new();
        for journal in &self.journals {
            let left =
                lines(std::iter::once(journal)).into_iter().any(|((kind, _, _), sum)| kind == "payable" && sum != 0);
            if left || journal.postings.iter().any(|posting| posting.amount <= 0 || posting.debit == posting.credit) {
                bad.push(format!("the journal of unit {} is not balanced", journal.unit_id));
            }
        }
        bad
    }

    pub(super) fn carry_equals_open_carries(&self) -> Violations {
        let mut sums: BTreeMap<(String, Currency), i128> = BTreeMap::new();
        for ((kind, owner, currency), sum) in lines(self.journals.iter()) {
            if kind == "carry" {
                *sums.entry((owner, currency)).or_default() += sum;
            }
        }
        for entry in self.entries.values().filter(|entry| entry.new.kind == EntryKind::Carry && entry.is_open()) {
            if let Some(job) = entry.job_id.and_then(|job| self.jobs.get(&job)) {
                let owner = format!("{}/{}", job.definition.name, entry.new.merchant);
                *sums.entry((owner, entry.new.currency)).or_default() -= i128::from(entry.new.amount);
            }
        }
        let apart = sums.into_iter().filter(|(_, sum)| *sum != 0);
        apart.map(|((owner, currency), sum)| format!("carry of {owner} is {sum} {currency} off")).collect()
    }

    pub(super) fn payout_clearing_equals_unfinal(&self) -> Violations {
        let mut sums: BTreeMap<Currency, i128> = BTreeMap::new();
        for ((kind, _, currency), sum) in lines(self.journals.iter()) {
            if kind == "payout_clearing" {
                *sums.entry(currency).or_default() += sum;
            }
        }
        for (_, (_, currency, amount)) in self.payouts().filter(|(found, _)| !found.state.is_final()) {
            *sums.entry(*currency).or_default() -= i128::from(*amount);
        }
        let apart = sums.into_iter().filter(|(_, sum)| *sum != 0);
        apart.map(|(currency, sum)| format!("payout clearing is {sum} {currency} off")).collect()
    }

    pub(super) fn merchants_add_up(&self) -> Violations {
        let mut sums: BTreeMap<(String, Currency), i128> = BTreeMap::new();
        for entry in self.entries.values().filter(|entry| entry.withdrawn_at.is_none()) {
            let amount = i128::from(entry.new.amount);
            let imported = if entry.new.kind == EntryKind::Carry { 0 } else { amount };
            let open = if entry.unit_id.is_none() { amount } else { 0 };
            *sums.entry((entry.new.merchant.clone(), entry.new.currency)).or_default() += imported - open;
        }
        for journal in &self.journals {
            for posting in &journal.postings {
                let (merchant, fee) = match (&posting.debit, &posting.credit) {
                    (Account::Payable(merchant), Account::Fees) => (merchant, i128::from(posting.amount)),
                    (Account::Fees, Account::Payable(merchant)) => (merchant, -i128::from(posting.amount)),
                    (_, _) => continue,
                };
                *sums.entry((merchant.clone(), journal.currency)).or_default() -= fee;
            }
        }
        for (found, (merchant, currency, amount)) in self.payouts() {
            let gone = [InstructionState::Rejected, InstructionState::Returned].contains(&found.state);
            *sums.entry((merchant.clone(), *currency)).or_default() -= if gone { 0 } else { i128::from(*amount) };
        }
        let apart = sums.into_iter().filter(|(_, sum)| *sum != 0);
        apart.map(|((merchant, currency), sum)| format!("{currency}:{merchant} is {sum} off")).collect()
    }

    pub(super) fn reverts_are_whole(&self) -> Violations {
        let mut bad = Vec::new();
        let mut opposites: BTreeMap<&str, &Entry> = self
            .entries
            .values()
            .filter(|entry| entry.source == OWN_SOURCE && entry.new.kind == EntryKind::Adjustment && entry.stands())
            .map(|entry| (entry.new.id.as_str(), entry))
            .collect();
        for entry in self.entries.values() {
            let import = entry.import_id.and_then(|import| self.imports.get(&import));
            let is_back = import.is_some_and(|import| import.record.reverted_at.is_some());
            if is_back == entry.stands() {
                let import = entry.import_id;
                bad.push(format!("entry {}/{} is not as its import {import:?} is", entry.source, entry.new.id));
            }
            if entry.reverted_at.is_none() {
                continue;
            }
            let settled_by = entry
                .unit_id
                .and_then(|unit| self.units.get(&unit))
                .and_then(|unit| self.runs.get(&unit.run_id))
                .map(|run| run.job_id);
            let key = format!("revert:{}:{}", entry.import_id.unwrap_or(0), entry.id);
            let answered = opposites.remove(key.as_str()).is_some_and(|found| {
                let (one, other) = (&entry.new, &found.new);
                (&one.merchant, one.currency) == (&other.merchant, other.currency)
                    && (one.amount.checked_neg(), one.fee.checked_neg()) == (Some(other.amount), Some(other.fee))
                    && found.job_id == settled_by
            });
            if !answered || settled_by.is_none() || entry.withdrawn_at.is_some() {
                bad.push(format!("entry {}/{} is reverted without its opposite", entry.source, entry.new.id));
            }
        }
        bad.extend(opposites.keys().map(|id| format!("{id} is the opposite of nothing that is reverted")));
        let back = self.imports.values().filter(|import| import.record.reverted_at.is_some());
        let mut by_act: BTreeMap<String, i32> = back.map(|import| (import.record.id.to_string(), 1)).collect();
        for act in self.acts.iter().filter(|act| act.view.action == "imports revert") {
            *by_act.entry(act.view.target.clone()).or_default() -= 1;
        }
        let apart = by_act.into_iter().filter(|(_, left)| *left != 0);
        bad.extend(apart.map(|(import, _)| format!("import {import} and the acts that took it back differ")));
        bad
    }
}

//! The report of a run: the same sums by part, over rows that are values.

use std::collections::BTreeSet;

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};

use super::rows::{Instruction, Run};
use super::state::MemoryState;
use crate::domain::JobName;
use crate::domain::entry::{EntryKind, OWN_SOURCE};
use crate::domain::instruction::InstructionState;
use crate::domain::netting::Account;
use crate::store::report::{Part, Sums};
use crate::store::{PAYOUTS_REPORTED, ReportedPayout, RunReport};

/// The sum that a balance of that account belongs to.
const fn balance_of(account: &Account) -> Part {
    match account {
        Account::SourceClearing(_) => Part::SourceClearing,
        Account::Payable(_) => Part::Payable,
        Account::Fees => Part::FeesAccount,
        Account::Carry(..) => Part::CarryAccount,
        Account::PayoutClearing => Part::PayoutClearing,
        Account::Bank => Part::Bank,
    }
}

const fn payouts_in(state: InstructionState) -> Part {
    match state {
        InstructionState::Paid => Part::Paid,
        InstructionState::Rejected => Part::RejectedPayouts,
        InstructionState::Returned => Part::ReturnedPayouts,
        InstructionState::Pending | InstructionState::Sending | InstructionState::Unknown | InstructionState::Held => {
            Part::InFlight
        }
    }
}

fn reported(found: &Instruction) -> Option<ReportedPayout> {
    let (merchant, currency, amount) = found.payout.as_ref()?;
    Some(ReportedPayout {
        key: found.key.clone(),
        merchant: merchant.clone(),
        amount: currency.format(*amount),
        currency: currency.code().to_owned(),
        value_date: Some(found.value_date),
        reference: found.reference.clone(),
        return_reference: found.return_reference.clone(),
        state: found.state,
        reason: found.reason.map(str::to_owned),
    })
}

impl MemoryState {
    /// The reports of a job's runs with a tick in that second, oldest first.
    pub(super) fn report(&self, job: &JobName, tick: DateTime<Utc>, now: DateTime<Utc>) -> Vec<RunReport> {
        let within = |run: &&Run| run.job == *job && run.tick >= tick && run.tick < tick + TimeDelta::seconds(1);
        self.runs.values().filter(within).filter_map(|run| self.report_of(run, now)).collect()
    }

    /// Payouts that a bank statement is compared with.
    pub(super) fn stated_payouts(
        &self,
        keys: &[String],
        references: &[String],
        (from, to): (NaiveDate, NaiveDate),
    ) -> Vec<ReportedPayout> {
        let keys: BTreeSet<&String> = keys.iter().collect();
        let references: BTreeSet<&String> = references.iter().collect();
        let belongs = |found: &&Instruction| {
            let paid = match found.state {
                InstructionState::Paid | InstructionState::Returned => true,
                InstructionState::Pending
                | InstructionState::Sending
                | InstructionState::Unknown
                | InstructionState::Rejected
                | InstructionState::Held => false,
            };
            keys.contains(&found.key)
                || [&found.reference, &found.return_reference]
                    .into_iter()
                    .flatten()
                    .any(|name| references.contains(name))
                || (paid && (from..=to).contains(&found.value_date))
        };
        let most = usize::try_from(PAYOUTS_REPORTED).unwrap_or(usize::MAX);
        self.instructions.values().filter(belongs).filter_map(reported).take(most).collect()
    }

    fn report_of(&self, run: &Run, now: DateTime<Utc>) -> Option<RunReport> {
        let view = self.run_view(run.id, now)?;
        let of_run = || self.instructions.values().filter(|found| found.run_id == run.id);
        let all = of_run().filter(|found| found.payout.is_some()).count() as u64;
        let most = usize::try_from(PAYOUTS_REPORTED).unwrap_or(usize::MAX);
        let payouts: Vec<ReportedPayout> = of_run().filter_map(reported).take(most).collect();
        Some(RunReport {
            run: view.summary,
            cutoff_at: view.cutoff_at,
            value_date: view.value_date,
            currencies: self.sums_of(run.id).roll_forward(),
            payouts_left_out: all.saturating_sub(payouts.len() as u64),
            payouts,
        })
    }

    fn sums_of(&self, run: i64) -> Sums {
        let mut sums = Sums::default();
        let is_of = |unit: Option<i64>| unit.and_then(|id| self.units.get(&id)).is_some_and(|unit| unit.run_id == run);
        for entry in self.entries.values().filter(|entry| is_of(entry.unit_id)) {
            let part = if entry.new.kind == EntryKind::Carry { Part::BroughtForward } else { Part::Imported };
            sums.add(entry.new.currency, part, entry.new.amount.into());
            sums.add(entry.new.currency, Part::Fees, entry.new.fee.into());
        }
        for unit in self.units_of(run) {
            if let (Some((currency, _)), Some(net)) = (&unit.ledger, unit.net) {
                sums.add(*currency, Part::Nets, net.into());
            }
            self.add_carry(&mut sums, Part::Carried, &format!("carry:{}:{}", unit.id, unit.generation));
        }
        for found in self.instructions.values().filter(|found| found.run_id == run) {
            let Some((_, currency, amount)) = &found.payout else { continue };
            sums.add(*currency, payouts_in(found.state), (*amount).into());
            let (unit, generation) = (found.unit_id, found.generation);
            self.add_carry(&mut sums, Part::Rejected, &format!("rejected:{unit}:{generation}"));
            self.add_carry(&mut sums, Part::Returned, &format!("returned:{unit}:{generation}"));
        }
        for journal in self.journals.iter().filter(|journal| is_of(Some(journal.unit_id))) {
            for posting in &journal.postings {
                let amount = i128::from(posting.amount);
                sums.add(journal.currency, balance_of(&posting.debit), -amount);
                sums.add(journal.currency, balance_of(&posting.credit), amount);
            }
        }
        sums
    }

    fn add_carry(&self, sums: &mut Sums, part: Part, id: &str) {
        let of = self.entries.values().filter(|entry| entry.source == OWN_SOURCE && entry.new.id == id);
        for entry in of.filter(|entry| entry.new.kind == EntryKind::Carry && entry.stands()) {
            sums.add(entry.new.currency, part, entry.new.amount.into());
            if entry.unit_id.is_none() {
                sums.add(entry.new.currency, Part::StillOpen, entry.new.amount.into());
            }
        }
    }
}

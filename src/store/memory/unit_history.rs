//! All that is kept of one unit.

use std::collections::BTreeMap;

use super::rows::{Instruction, Journal, Unit};
use super::state::MemoryState;
use crate::domain::entry::EntryKind;
use crate::domain::money::Currency;
use crate::store::unit_history::account;
use crate::store::{
    ActView, RequestKind, UNIT_HISTORY_SHOWN, UnitBatch, UnitEntries, UnitHistory, UnitPosting, UnitRequest,
};

impl MemoryState {
    /// One unit of a run with its history.
    pub(super) fn unit_history(&self, run: i64, key: &str) -> Option<UnitHistory> {
        let unit = self.units_of(run).find(|unit| unit.key == key)?;
        let most = usize::try_from(UNIT_HISTORY_SHOWN).unwrap_or(usize::MAX);
        let batch = self.batches.iter().find(|batch| unit.batch_id == Some(batch.id));
        let journals = self.journals.iter().filter(|journal| journal.unit_id == unit.id);
        let instructions = self.instructions.values().filter(|found| found.unit_id == unit.id);
        Some(UnitHistory {
            unit: self.unit_view(unit),
            generation: unit.generation,
            batch: batch.map(|batch| UnitBatch { id: batch.id, term: batch.term, committed_at: batch.committed_at }),
            entries: self.entries_of(unit),
            postings: journals.flat_map(postings).take(most).collect(),
            requests: instructions.map(request).take(most).collect(),
            acts: self.acts_on(unit).into_iter().take(most).collect(),
        })
    }

    fn entries_of(&self, unit: &Unit) -> Vec<UnitEntries> {
        let mut sums: BTreeMap<(bool, &str, Currency), (u64, i128, i128)> = BTreeMap::new();
        for entry in self.entries.values().filter(|entry| entry.unit_id == Some(unit.id)) {
            let of = (entry.new.kind == EntryKind::Carry, entry.source.as_str(), entry.new.currency);
            let sum = sums.entry(of).or_default();
            sum.0 += 1;
            sum.1 += i128::from(entry.new.amount);
            sum.2 += i128::from(entry.new.fee);
        }
        sums.into_iter()
            .map(|((carries, source, currency), (entries, amount, fee))| UnitEntries {
                source: source.to_owned(),
                carries,
                entries,
                amount: currency.format(amount),
                fee: currency.format(fee),
            })
            .collect()
    }

    /// Words on its payouts, releases of its run, retries that name it or all.
    fn acts_on(&self, unit: &Unit) -> Vec<ActView> {
        let of_unit: Vec<&Instruction> = self.instructions.values().filter(|found| found.unit_id == unit.id).collect();
        let retries = |at| {
            self.requests.iter().filter(|request| request.at == at).any(|request| match &request.kind {
                RequestKind::RetryUnits { run, keys } => {
                    *run == unit.run_id && (keys.is_empty() || keys.contains(&unit.key))
                }
                RequestKind::Trigger { .. } | RequestKind::Backfill { .. } => false,
            })
        };
        let run = unit.run_id.to_string();
        let concerns = |act: &&ActView| match act.action.as_str() {
            "payouts resolve" | "ask: payouts resolve" | "units resolve" | "ask: units resolve" => {
                of_unit.iter().any(|found| found.key == act.target)
            }
            "payouts release" | "ask: payouts release" => {
                act.target == run && of_unit.iter().any(|found| found.payout.is_some())
            }
            "units retry" => retries(act.at),
            _ => false,
        };
        self.acts.iter().map(|row| &row.view).filter(concerns).cloned().collect()
    }
}

fn postings(journal: &Journal) -> impl Iterator<Item = UnitPosting> + '_ {
    journal.postings.iter().map(|posting| UnitPosting {
        journal: journal.kind.as_str().to_owned(),
        generation: journal.generation,
        term: journal.term,
        debit: account(posting.debit.kind(), &posting.debit.owner()),
        credit: account(posting.credit.kind(), &posting.credit.owner()),
        currency: journal.currency.code().to_owned(),
        amount: journal.currency.format(posting.amount),
    })
}

fn request(found: &Instruction) -> UnitRequest {
    UnitRequest {
        key: found.key.clone(),
        kind: found.kind.as_str().to_owned(),
        generation: found.generation,
        state: found.state,
        reason: found.reason.map(str::to_owned),
        release: found.release.as_str().to_owned(),
        attempts: found.attempts,
        in_doubt: found.in_doubt,
        first_sent_at: found.first_sent_at,
        next_attempt_at: found.next_attempt_at,
        receiver: found.receiver.clone(),
        reference: found.reference.clone(),
        last_error: found.last_error.clone(),
        value_date: Some(found.value_date),
        term: found.term,
        sending_term: found.sending_term,
        created_at: found.created_at,
        final_at: found.final_at,
        tries: found.tries.clone(),
    }
}

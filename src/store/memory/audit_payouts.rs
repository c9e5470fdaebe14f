//! The audit's checks of payouts: doubts that are kept, and what follows from an end.

use std::collections::BTreeMap;

use super::audit::Violations;
use super::audit_money::is_of_unit;
use super::rows::{Instruction, JournalKind};
use super::state::MemoryState;
use crate::domain::instruction::{InstructionKind, InstructionState};
use crate::domain::money::Currency;
use crate::domain::netting::{Account, Posting};

/// The kinds of journal that an end of a payout has.
const ENDS: [JournalKind; 3] = [JournalKind::Paid, JournalKind::Rejected, JournalKind::Returned];

impl MemoryState {
    pub(super) fn doubt_is_kept(&self) -> Violations {
        let forgotten = |found: &&Instruction| match (found.state, found.in_doubt) {
            (InstructionState::Unknown, false) => true,
            (InstructionState::Held, false) => found.reason == Some("unknown"),
            (InstructionState::Pending | InstructionState::Sending, true) => !found.idempotent,
            (InstructionState::Rejected, true) => !found.resolved,
            (
                InstructionState::Pending
                | InstructionState::Sending
                | InstructionState::Unknown
                | InstructionState::Paid
                | InstructionState::Rejected
                | InstructionState::Held
                | InstructionState::Returned,
                _,
            ) => false,
        };
        let unsent = |found: &&Instruction| {
            let open = matches!(found.state, InstructionState::Pending | InstructionState::Sending);
            let called = found.kind == InstructionKind::Call && !open;
            found.first_sent_at.is_none() && (found.in_doubt || found.state == InstructionState::Sending || called)
        };
        self.instructions
            .values()
            .filter(|found| forgotten(found) || unsent(found))
            .map(|found| format!("instruction {} is {} (doubt {})", found.key, found.state.as_str(), found.in_doubt))
            .collect()
    }

    /// Paid: payout clearing to bank. Rejected: payout clearing to the job's carry. Returned: paid, and bank to the job's
    /// carry. Not final: nothing. Each carry is there once.
    pub(super) fn finals_are_posted(&self) -> Violations {
        let mut posted: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for journal in self.journals.iter().filter(|journal| journal.kind != JournalKind::Settle) {
            let lines = posted.entry((journal.unit_id, journal.generation, journal.kind)).or_default();
            lines.extend(journal.postings.iter().map(|posting| (journal.currency, posting.clone())));
        }
        let mut carried: BTreeMap<&str, Vec<_>> = BTreeMap::new();
        for entry in self.own_carries().filter(|entry| !is_of_unit(entry)) {
            let what = (entry.new.merchant.as_str(), entry.new.currency, entry.new.amount, entry.job_id);
            carried.entry(&entry.new.id).or_default().push(what);
        }
        let mut bad = Vec::new();
        for (found, (merchant, currency, amount)) in self.payouts() {
            for end in ENDS {
                let wanted = has_end(found.state, end);
                let lines = posted.remove(&(found.unit_id, found.generation, end)).unwrap_or_default();
                if !self.is_line(found, end, wanted, &lines) {
                    bad.push(format!(
                        "payout {} is {}, {} lines {end:?}",
                        found.key,
                        found.state.as_str(),
                        lines.len()
                    ));
                }
                let id = format!("{}:{}:{}", end.as_str(), found.unit_id, found.generation);
                let came_back = carried.remove(id.as_str());
                let carry = (merchant.as_str(), *currency, *amount, Some(found.job_id));
                let expected = (wanted && end != JournalKind::Paid).then(|| vec![carry]);
                if came_back != expected {
                    bad.push(format!("payout {} is {}, {came_back:?} came back", found.key, found.state.as_str()));
                }
            }
        }
        bad.extend(posted.keys().map(|(unit, _, kind)| format!("the journal {kind:?} of unit {unit} is of no payout")));
        bad.extend(carried.keys().map(|id| format!("{id} is a carry of no payout")));
        bad
    }

    /// Whether an end of a payout has exactly the line that it should.
    fn is_line(&self, found: &Instruction, end: JournalKind, wanted: bool, lines: &[(Currency, Posting)]) -> bool {
        let Some((merchant, currency, amount)) = &found.payout else { return false };
        let Some(job) = self.runs.get(&found.run_id).map(|run| run.job.clone()) else { return false };
        let carry = Account::Carry(job, merchant.clone());
        let (debit, credit) = match end {
            JournalKind::Settle => return false,
            JournalKind::Paid => (Account::PayoutClearing, Account::Bank),
            JournalKind::Rejected => (Account::PayoutClearing, carry),
            JournalKind::Returned => (Account::Bank, carry),
        };
        match lines {
            [] => !wanted,
            [(of, line)] => {
                wanted && of == currency && (&line.debit, &line.credit, line.amount) == (&debit, &credit, *amount)
            }
            _ => false,
        }
    }
}

/// Whether a payout in a state has come to that end.
const fn has_end(state: InstructionState, end: JournalKind) -> bool {
    match state {
        InstructionState::Paid => matches!(end, JournalKind::Paid),
        InstructionState::Rejected => matches!(end, JournalKind::Rejected),
        InstructionState::Returned => matches!(end, JournalKind::Paid | JournalKind::Returned),
        InstructionState::Pending | InstructionState::Sending | InstructionState::Unknown | InstructionState::Held => {
            false
        }
    }
}

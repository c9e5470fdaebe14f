//! What came of payouts: each try recorded once, with the posting and the carry that follow; or put back.
//!
//! Invariants: a try is recorded only while it is the one on the wire under its term (one that was only asked for: while its
//! outcome is unknown). A doubt stays, and nothing in doubt is reversed but by a person's word.

use chrono::{DateTime, Utc};

use super::jobs::span;
use super::rows::{Instruction, Journal, JournalKind};
use super::state::{Done, MemoryState};
use crate::domain::Claim;
use crate::domain::entry::{EntryKind, NewEntry, OWN_SOURCE};
use crate::domain::instruction::{InstructionKind, InstructionState};
use crate::domain::netting::{Account, Posting};
use crate::store::bounds::{bounded, wait};
use crate::store::{Heard, PayoutFate, PayoutRecord, PayoutRecords, PayoutsRecorded};

impl Instruction {
    /// On the wire under this claim.
    fn is_sent_by(&self, claim: &Claim) -> bool {
        self.kind == InstructionKind::Payout
            && self.election == claim.election
            && self.state == InstructionState::Sending
            && self.sending_term == Some(claim.term.get())
    }

    /// Only asked for, if at all.
    fn is_asked_for(&self, claim: &Claim) -> bool {
        self.kind == InstructionKind::Payout
            && self.election == claim.election
            && self.state == InstructionState::Unknown
    }

    /// What it is once nothing is on the wire any more and nothing new is known. Where no byte of it ever left, its key has not
    /// begun to count.
    pub(super) fn put_back(&mut self, left: bool, next_attempt_at: Option<DateTime<Utc>>) {
        self.state = self.as_it_was();
        (self.next_attempt_at, self.sending_term, self.reason) = (next_attempt_at, None, None);
        if !self.in_doubt && !left {
            (self.first_sent_at, self.key_valid_until) = (None, None);
        }
    }

    /// The state in which it may leave.
    pub(super) const fn as_it_was(&self) -> InstructionState {
        if self.in_doubt { InstructionState::Unknown } else { InstructionState::Pending }
    }
}

impl MemoryState {
    /// Records what came of tries, and what it says about their receiver.
    pub(super) fn record_payouts(
        &mut self,
        claim: &Claim,
        records: &PayoutRecords,
        now: DateTime<Utc>,
    ) -> Done<PayoutsRecorded> {
        let mut recorded = Vec::new();
        for record in &records.records {
            if let Some(state) = self.record_payout(claim, record, now) {
                recorded.push((record, state));
            }
        }
        let counts = |_, given: &PayoutRecord| recorded.iter().any(|(record, _)| std::ptr::eq(*record, given));
        let heard = Heard::of_payouts(records, counts);
        let needs_resume = self.hear(claim, &heard, now);
        let mut states: Vec<_> = recorded.iter().map(|(record, state)| (record.instruction, *state)).collect();
        states.sort_unstable_by_key(|(id, _)| *id);
        Done::Commit(PayoutsRecorded { states, needs_resume })
    }

    /// Answers the state afterwards; nothing where the try is no longer as expected.
    fn record_payout(&mut self, claim: &Claim, record: &PayoutRecord, now: DateTime<Utc>) -> Option<InstructionState> {
        let found = self.instructions.get_mut(&record.instruction)?;
        let as_expected = if record.asked { found.is_asked_for(claim) } else { found.is_sent_by(claim) };
        if !as_expected || found.attempts != record.attempt {
            return None;
        }
        found.end_try(record.fate.outcome(), record.fate.error(), now);
        match &record.fate {
            PayoutFate::Paid { reference } => {
                let reference = reference.as_deref().map(bounded);
                self.end_payout(record.instruction, InstructionState::Paid, reference, claim.term.get(), now);
            }
            PayoutFate::Rejected { error } if !found.in_doubt => {
                found.last_error = Some(bounded(error));
                self.end_payout(record.instruction, InstructionState::Rejected, None, claim.term.get(), now);
            }
            PayoutFate::Rejected { error } | PayoutFate::Unknown { error, again_in: None } => {
                found.doubted("unknown", error);
            }
            PayoutFate::Mismatch { error } => found.doubted("mismatch", error),
            PayoutFate::Unknown { error, again_in: Some(again_in) } => {
                found.in_doubt = true;
                found.last_error = Some(bounded(error));
                found.put_back(true, Some(now + span(wait(*again_in))));
            }
            PayoutFate::Back { left, error, again_in } => {
                found.last_error = error.as_deref().map(bounded).or_else(|| found.last_error.take());
                found.put_back(*left, again_in.map(|again_in| now + span(wait(again_in))));
            }
        }
        self.instructions.get(&record.instruction).map(|found| found.state)
    }

    /// Puts back what stands on the wire to a receiver and nobody has in hand: no byte of it left.
    pub(super) fn put_back_payouts(
        &mut self,
        claim: &Claim,
        origin: &str,
        kept: &[(i64, u32)],
        now: DateTime<Utc>,
    ) -> Done<u64> {
        let mut put = 0;
        for found in self.instructions.values_mut() {
            let in_hand = kept.contains(&(found.id, found.attempts));
            if found.is_sent_by(claim) && found.receiver.as_deref() == Some(origin) && !in_hand {
                // One that was tried before may have left then.
                found.put_back(found.attempts > 1, None);
                found.end_try("not_sent", None, now);
                put += 1;
            }
        }
        Done::Commit(put)
    }

    /// Ends a payout, or its end, with the posting and the carry that follow.
    pub(super) fn end_payout(
        &mut self,
        id: i64,
        state: InstructionState,
        reference: Option<String>,
        term: i64,
        now: DateTime<Utc>,
    ) {
        let xact = self.xact();
        let Some(found) = self.instructions.get_mut(&id) else { return };
        let Some((merchant, currency, amount)) = found.payout.clone() else { return };
        let Some(job) = self.runs.get(&found.run_id).map(|run| run.job.clone()) else { return };
        found.state = state;
        (found.reason, found.next_attempt_at, found.sending_term) = (None, None, None);
        if state == InstructionState::Returned {
            found.return_reference = reference;
        } else {
            found.reference = reference.or_else(|| found.reference.take());
        }
        found.final_at = Some(now);
        let carry = Account::Carry(job, merchant.clone());
        let (kind, debit, credit) = match state {
            InstructionState::Paid => (JournalKind::Paid, Account::PayoutClearing, Account::Bank),
            InstructionState::Rejected => (JournalKind::Rejected, Account::PayoutClearing, carry),
            InstructionState::Returned => (JournalKind::Returned, Account::Bank, carry),
            InstructionState::Pending
            | InstructionState::Sending
            | InstructionState::Unknown
            | InstructionState::Held => return,
        };
        let (unit_id, generation, election, job_id) =
            (found.unit_id, found.generation, found.election.clone(), found.job_id);
        let postings = vec![Posting { debit, credit, amount }];
        self.journals.push(Journal { unit_id, generation, kind, election, term, currency, postings, xact });
        if kind != JournalKind::Paid {
            let entry = NewEntry {
                id: format!("{}:{unit_id}:{generation}", kind.as_str()),
                merchant,
                currency,
                kind: EntryKind::Carry,
                amount,
                fee: 0,
                occurred_at: now,
                available_at: now,
                reference: None,
            };
            self.add_entry(OWN_SOURCE, entry, None, Some(job_id));
        }
    }
}

impl Instruction {
    /// For a person: it may have had its effect.
    fn doubted(&mut self, reason: &'static str, error: &str) {
        self.in_doubt = true;
        self.state = InstructionState::Held;
        self.reason = Some(reason);
        self.last_error = Some(bounded(error));
        (self.next_attempt_at, self.sending_term) = (None, None);
    }
}

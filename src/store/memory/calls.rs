//! Calls of outside handlers: taken (on the wire under one term), recorded once, in doubt for good.

use chrono::{DateTime, Utc};

use super::jobs::span;
use super::rows::{Instruction, Unit};
use super::state::{Done, MemoryState, is_due};
use crate::domain::Claim;
use crate::domain::instruction::{InstructionKind, InstructionState};
use crate::domain::unit::UnitState;
use crate::store::bounds::{bounded, wait};
use crate::store::{BatchCounts, Call, CallFate, CallRecord, OpenRun, UnitTry};

/// Why an instruction whose outcome nobody knows is held.
const UNKNOWN: &str = "unknown";

impl Instruction {
    /// Where no byte of any try left (none was charged, is in doubt, or was put off), its key has not begun to count.
    fn not_sent(&mut self, charged: bool) {
        let left = |made: &UnitTry| made.outcome.as_deref().is_some_and(|outcome| outcome != "not_sent");
        if !self.in_doubt && !charged && !self.tries.iter().any(left) {
            self.first_sent_at = None;
        }
    }
}

impl MemoryState {
    /// Takes up to `limit` units: their instructions are written, or taken up again.
    pub(super) fn take_calls(
        &mut self,
        claim: &Claim,
        run: &OpenRun,
        limit: u32,
        now: DateTime<Utc>,
    ) -> Done<Vec<Call>> {
        if !self.is_open(&claim.election, run.id) {
            return Done::RollBack(Vec::new());
        }
        let may_go = |call: &Instruction| match call.state {
            InstructionState::Pending | InstructionState::Unknown => is_due(call.next_attempt_at, now),
            InstructionState::Sending
            | InstructionState::Paid
            | InstructionState::Rejected
            | InstructionState::Held
            | InstructionState::Returned => false,
        };
        let mut due: Vec<(Unit, Option<i64>)> = self
            .units_of(run.id)
            .filter(|unit| unit.state == UnitState::Pending && is_due(unit.next_attempt_at, now))
            .map(|unit| (unit, self.call_of(unit)))
            .filter(|(_, call)| call.is_none_or(may_go))
            .map(|(unit, call)| (unit.clone(), call.map(|call| call.id)))
            .collect();
        // Those with attempts behind them, or put back with a wait, come after all others, in the order of their waits.
        let tried = |unit: &Unit, call: &Option<i64>| {
            let call = call.and_then(|call| self.instructions.get(&call));
            let waited = call.and_then(|call| call.next_attempt_at);
            let put_back = waited.is_some() && call.is_some_and(|call| call.state == InstructionState::Pending);
            (unit.attempts > 0 || put_back).then_some(waited.or(unit.next_attempt_at))
        };
        due.sort_by_key(|(unit, call)| (tried(unit, call), unit.id));
        due.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        due.sort_by_key(|(unit, _)| unit.id);
        if due.is_empty() {
            return Done::RollBack(Vec::new());
        }
        let mut calls = Vec::with_capacity(due.len());
        for (unit, call) in due {
            let id = call.unwrap_or_else(|| self.write_call(claim, run, &unit, now));
            let Some(call) = self.instructions.get_mut(&id) else { continue };
            call.state = InstructionState::Sending;
            call.begin_try(false, claim.term.get(), now);
            call.sending_term = Some(claim.term.get());
            call.next_attempt_at = None;
            call.first_sent_at = call.first_sent_at.or(Some(now));
            calls.push(Call {
                instruction: id,
                unit: unit.id,
                key: unit.key,
                idempotency_key: call.key.clone(),
                body: call.body.clone(),
                attempt: call.attempts,
                charged: unit.attempts,
                in_doubt: call.in_doubt,
                age: call.first_sent_at.and_then(|first| (now - first).to_std().ok()).unwrap_or_default(),
            });
        }
        Done::Commit(calls)
    }

    /// The instruction of a unit's first call.
    fn write_call(&mut self, claim: &Claim, run: &OpenRun, unit: &Unit, now: DateTime<Utc>) -> i64 {
        let call = self.instruction(claim, run, unit, InstructionKind::Call, now);
        let id = call.id;
        let body = serde_json::json!({ "key": call.key, "unit": unit.key }).to_string().into_bytes();
        self.instructions.insert(id, Instruction { body, ..call });
        id
    }

    /// A call of the run that is on the wire under this claim, with its unit pending.
    fn is_on_the_wire(&self, claim: &Claim, run: i64, call: &Instruction) -> bool {
        call.kind == InstructionKind::Call
            && call.run_id == run
            && call.election == claim.election
            && call.state == InstructionState::Sending
            && call.sending_term == Some(claim.term.get())
            && self.units.get(&call.unit_id).is_some_and(|unit| unit.state == UnitState::Pending)
    }

    /// Records what came of calls; tries that are no longer as expected are left.
    pub(super) fn record_calls(
        &mut self,
        claim: &Claim,
        run: i64,
        records: &[CallRecord],
        now: DateTime<Utc>,
    ) -> Done<u64> {
        let as_expected: Vec<&CallRecord> = records
            .iter()
            .filter(|record| {
                self.instructions
                    .get(&record.instruction)
                    .is_some_and(|call| call.attempts == record.attempt && self.is_on_the_wire(claim, run, call))
            })
            .collect();
        let ends = |record: &&&CallRecord| match &record.fate {
            CallFate::Done => true,
            CallFate::Failed { again_in, .. } | CallFate::Unknown { again_in, .. } => again_in.is_none(),
            CallFate::NotSent | CallFate::Stopped { .. } | CallFate::PutOff { .. } => false,
        };
        let settled = as_expected.iter().filter(|record| record.fate == CallFate::Done).count() as u64;
        let counts = BatchCounts { settled, ..BatchCounts::default() };
        let batch = as_expected.iter().any(|record| ends(&record)).then(|| self.add_batch(claim, run, &counts, now));
        for record in &as_expected {
            self.record_call(claim, record, batch, now);
        }
        self.count_set_aside(batch);
        Done::Commit(as_expected.len() as u64)
    }

    /// Puts back what nobody has in hand: as one of which no byte left, once.
    pub(super) fn put_back(&mut self, claim: &Claim, run: i64, kept: &[(i64, u32)], now: DateTime<Utc>) -> Done<u64> {
        let nobodys: Vec<i64> = self
            .instructions
            .values()
            .filter(|call| self.is_on_the_wire(claim, run, call) && !kept.contains(&(call.id, call.attempts)))
            .map(|call| call.id)
            .collect();
        for call in &nobodys {
            let Some(call) = self.instructions.get_mut(call) else { continue };
            call.state = if call.in_doubt { InstructionState::Unknown } else { InstructionState::Pending };
            (call.next_attempt_at, call.sending_term) = (None, None);
            let charged = self.units.get(&call.unit_id).is_some_and(|unit| unit.attempts > 0);
            call.not_sent(charged);
            call.end_try("not_sent", None, now);
        }
        Done::Commit(nobodys.len() as u64)
    }

    fn record_call(&mut self, claim: &Claim, record: &CallRecord, batch: Option<i64>, now: DateTime<Utc>) {
        let (xact, term) = (self.xact(), claim.term.get());
        let Some(call) = self.instructions.get_mut(&record.instruction) else { return };
        let Some(unit) = self.units.get_mut(&call.unit_id) else { return };
        call.sending_term = None;
        call.reason = None;
        call.end_try(record.fate.outcome(), record.fate.error(), now);
        let as_it_was = if call.in_doubt { InstructionState::Unknown } else { InstructionState::Pending };
        let (state, error, again_in) = match &record.fate {
            CallFate::NotSent => {
                call.state = as_it_was;
                call.not_sent(unit.attempts > 0);
                return;
            }
            CallFate::Stopped { error, again_in, left } => {
                call.state = as_it_was;
                call.last_error = Some(bounded(error));
                call.next_attempt_at = Some(now + span(wait(*again_in)));
                if !left {
                    call.not_sent(unit.attempts > 0);
                }
                return;
            }
            CallFate::PutOff { error, again_in } => {
                call.state = as_it_was;
                call.last_error = Some(bounded(error));
                call.next_attempt_at = Some(now + span(wait(*again_in)));
                return;
            }
            CallFate::Done => {
                call.state = InstructionState::Paid;
                unit.end(UnitState::Settled, batch, term, xact, now);
                return;
            }
            CallFate::Failed { error, again_in: Some(again_in) } => (as_it_was, error, Some(*again_in)),
            // A failed try proves nothing about an earlier one that is in doubt.
            CallFate::Failed { error, again_in: None } if call.in_doubt => (InstructionState::Held, error, None),
            CallFate::Failed { error, again_in: None } => (InstructionState::Rejected, error, None),
            CallFate::Unknown { error, again_in } => {
                call.in_doubt = true;
                let state = if again_in.is_some() { InstructionState::Unknown } else { InstructionState::Held };
                (state, error, *again_in)
            }
        };
        let error = bounded(error);
        call.state = state;
        call.reason = (state == InstructionState::Held).then_some(UNKNOWN);
        call.last_error = Some(error.clone());
        call.next_attempt_at = again_in.map(|again_in| now + span(wait(again_in)));
        unit.attempts += 1;
        unit.last_error = Some(error);
        match call.next_attempt_at {
            Some(at) => unit.next_attempt_at = Some(at),
            None => unit.end(UnitState::SetAside, batch, term, xact, now),
        }
    }

    /// What a lower term left on the wire is unknown, or held for a person where the receiver is neither idempotent nor can be
    /// asked. A unit that waits for it is set aside; a payout's waits for nothing.
    pub(super) fn doubt_lower_terms(&mut self, claim: &Claim, now: DateTime<Utc>) -> u64 {
        let (xact, term) = (self.xact(), claim.term.get());
        let mut lost = 0;
        for call in self.instructions.values_mut() {
            let lower = call.sending_term.unwrap_or(0) < term;
            if call.election != claim.election || call.state != InstructionState::Sending || !lower {
                continue;
            }
            lost += 1;
            let error =
                format!("the leader of term {} ended before an answer was recorded", call.sending_term.unwrap_or(0));
            call.in_doubt = true;
            call.last_error = Some(error.clone());
            call.end_try("unknown", Some(&error), now);
            if call.idempotent || call.looks_up {
                call.state = InstructionState::Unknown;
                call.next_attempt_at = Some(now);
                continue;
            }
            call.state = InstructionState::Held;
            call.reason = Some(UNKNOWN);
            if let Some(unit) = self.units.get_mut(&call.unit_id).filter(|unit| unit.state == UnitState::Pending) {
                unit.last_error = Some(error);
                unit.end(UnitState::SetAside, None, term, xact, now);
            }
        }
        lost
    }
}

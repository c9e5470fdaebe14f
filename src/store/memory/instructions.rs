//! Instructions as they are first written: under the key of their unit, never tried.

use chrono::{DateTime, Utc};

use super::rows::{Instruction, Released, Unit};
use super::state::MemoryState;
use crate::domain::Claim;
use crate::domain::instruction::{InstructionKind, InstructionState};
use crate::domain::payout::{KeyParts, idempotency_key};
use crate::store::bounds::bounded;
use crate::store::{OpenRun, UnitTry};

impl MemoryState {
    /// What the key of a unit's instruction is derived from.
    pub(super) fn key_parts<'a>(&self, run: &'a OpenRun, unit: &'a Unit) -> KeyParts<'a> {
        KeyParts {
            deployment_id: self.deployment,
            job: &run.definition.name,
            kind: run.kind,
            tick: run.tick,
            request_id: run.request_id,
            unit_key: &unit.key,
            generation: unit.generation,
        }
    }

    /// The instruction of a unit's generation, not yet among the others; its bytes are its kind's.
    pub(super) fn instruction(
        &mut self,
        claim: &Claim,
        run: &OpenRun,
        unit: &Unit,
        kind: InstructionKind,
        now: DateTime<Utc>,
    ) -> Instruction {
        let key = idempotency_key(&self.key_parts(run, unit));
        Instruction {
            id: self.next_id(),
            unit_id: unit.id,
            run_id: run.id,
            job_id: run.job_id,
            election: claim.election.clone(),
            kind,
            generation: unit.generation,
            key,
            payout: None,
            body: Vec::new(),
            value_date: run.value_date,
            idempotent: run.definition.handler.is_idempotent(),
            looks_up: false,
            state: InstructionState::Pending,
            reason: None,
            release: Released::Auto,
            attempts: 0,
            in_doubt: false,
            first_sent_at: None,
            key_valid_until: None,
            next_attempt_at: None,
            receiver: None,
            reference: None,
            receiver_url: None,
            cleared: false,
            return_reference: None,
            resolved: false,
            last_error: None,
            term: claim.term.get(),
            sending_term: None,
            created_at: now,
            final_at: None,
            xact: self.xact(),
            tries: Vec::new(),
        }
    }
}

impl Instruction {
    /// Counts a try, and begins its row.
    pub(super) fn begin_try(&mut self, asked: bool, term: i64, now: DateTime<Utc>) {
        self.attempts += 1;
        self.tries.push(UnitTry {
            attempt: self.attempts,
            asked,
            term,
            receiver: self.receiver.clone(),
            began_at: now,
            ended_at: None,
            outcome: None,
            detail: None,
        });
    }

    /// Ends the row of the last try.
    pub(super) fn end_try(&mut self, outcome: &str, detail: Option<&str>, now: DateTime<Utc>) {
        if let Some(last) = self.tries.last_mut() {
            (last.ended_at, last.outcome, last.detail) = (Some(now), Some(outcome.to_owned()), detail.map(bounded));
        }
    }
}

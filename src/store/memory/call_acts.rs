//! Operators and calls: a person's word on what came of one, and what its unit becomes by it.

use chrono::{DateTime, Utc};

use super::approvals::Eyes;
use super::fence::Act;
use super::rows::Unit;
use super::state::{Done, MemoryState};
use crate::domain::Claim;
use crate::domain::instruction::InstructionState;
use crate::domain::run::RunState;
use crate::domain::unit::UnitState;
use crate::store::call_words::{NEVER_CALLED, call_ground, found_call};
use crate::store::{Actor, BatchCounts, CallWord, GuardedAct, ResolveOutcome, resolve_call};

/// A unit that an operator acts on, with its call where it was ever called.
struct Found {
    unit: Unit,
    call: Option<FoundCall>,
}

struct FoundCall {
    id: i64,
    key: String,
    state: InstructionState,
    becomes: Result<InstructionState, String>,
    told: String,
}

impl MemoryState {
    fn find_call(&self, run: i64, key: &str, word: &CallWord, now: DateTime<Utc>) -> Option<Found> {
        let unit = self.units_of(run).find(|unit| unit.key == key)?.clone();
        let definition = &self.runs.get(&run)?.definition;
        let call = self.call_of(&unit).map(|call| {
            let ground = call_ground(definition, call.in_doubt, call.first_sent_at, now);
            FoundCall {
                id: call.id,
                key: call.key.clone(),
                state: call.state,
                becomes: resolve_call(unit.state, call.state, word, ground),
                told: found_call(unit.state, (&call.key, call.attempts), call.state, call.reason, call.in_doubt),
            }
        });
        Some(Found { unit, call })
    }

    /// What a person's word on a call would find now; or why it is not taken.
    pub(super) fn look_at_call(
        &self,
        run: i64,
        key: &str,
        word: &CallWord,
        now: DateTime<Utc>,
    ) -> Result<String, String> {
        let found = self.find_call(run, key, word, now).ok_or_else(|| format!("run {run} has no unit {key}"))?;
        let call = found.call.ok_or_else(|| NEVER_CALLED.to_owned())?;
        call.becomes.map(|_| call.told)
    }

    /// Takes a person's word on what came of a unit's call.
    pub(super) fn resolve_call(
        &mut self,
        (run, unit_key): (i64, &str),
        word: &CallWord,
        reason: &str,
        actor: &Actor,
        eyes: Eyes<'_>,
        now: DateTime<Utc>,
    ) -> Done<ResolveOutcome> {
        let Some(Found { unit, call }) = self.find_call(run, unit_key, word, now) else {
            return Done::RollBack(ResolveOutcome::NotFound);
        };
        let Some(call) = call else {
            let (state, why) = (InstructionState::Pending, NEVER_CALLED.to_owned());
            return Done::RollBack(ResolveOutcome::Refused { state, why });
        };
        let becomes = match call.becomes {
            Ok(becomes) => becomes,
            Err(why) => return Done::RollBack(ResolveOutcome::Refused { state: call.state, why }),
        };
        let key = call.key.clone();
        let asks = GuardedAct::ResolveCall { run, unit: unit_key.to_owned(), key, word: word.clone() };
        if let Some(request) = self.waits(eyes, &asks, reason, actor, now) {
            return Done::Commit(ResolveOutcome::Waits { request });
        }
        let act = Act {
            action: "units resolve",
            target: call.key,
            reason: Some(reason),
            election: Some(&unit.election),
            already: false,
            baseline: None,
        };
        self.act(actor, act, now);
        if let Some(found) = self.instructions.get_mut(&call.id) {
            found.state = becomes;
            (found.reason, found.next_attempt_at) = (None, None);
            found.reference = word.reference().map(str::to_owned).or_else(|| found.reference.take());
            found.final_at = found.final_at.or(Some(now));
            found.resolved = true;
        }
        self.end_by_word(&unit, word.unit_becomes(), now);
        Done::Commit(ResolveOutcome::Resolved { was: call.state, now: becomes })
    }

    fn end_by_word(&mut self, unit: &Unit, becomes: UnitState, now: DateTime<Utc>) {
        let Some(holder) = self.fences.get(&unit.election).map(|fence| fence.holder) else { return };
        let claim = Claim { election: unit.election.clone(), term: holder.term, tenure_id: holder.tenure_id };
        let (settled, empty) = (u64::from(becomes == UnitState::Settled), u64::from(becomes == UnitState::Empty));
        let batch = self.add_batch(&claim, unit.run_id, &BatchCounts { settled, empty, ..BatchCounts::default() }, now);
        let xact = self.xact();
        if let Some(found) = self.units.get_mut(&unit.id) {
            found.end(becomes, Some(batch), claim.term.get(), xact, now);
        }
        let open = |unit: &Unit| matches!(unit.state, UnitState::Pending | UnitState::SetAside);
        let any_open = self.units_of(unit.run_id).any(open);
        if let Some(run) = self.runs.get_mut(&unit.run_id)
            && run.state == RunState::CompleteSetAside
            && !run.was_planning
            && !any_open
        {
            run.state = RunState::Complete;
        }
    }
}

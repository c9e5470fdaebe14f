//! One in-store batch: claim, effect, states, instructions and its row.
//!
//! A hook runs between the claim and the rest, without the mutex: it may take its time. Its units are held for as long, as
//! their row locks would be; what advances meanwhile has ended the batch, as it would have ended its session.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::MemoryStore;
use super::rows::Unit;
use super::state::{Done, Kind, MemoryState};
use super::tenure::MemoryTenure;
use crate::domain::unit::UnitState;
use crate::domain::{Claim, ElectionName};
use crate::store::{
    BatchCounts, BatchError, BatchHook, Entered, Fenced, OpenRun, SettleOutcome, StoreError, TenureStore, UnitPick,
};

pub(super) const OPERATION: &str = "settle";

/// Units that a batch holds; let go of whatever happens to it.
struct Held {
    store: MemoryStore,
    units: Vec<Unit>,
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut held = self.store.held();
        for unit in &self.units {
            held.remove(&unit.id);
        }
    }
}

/// A batch of units, failed.
pub(super) fn failed(units: &[Unit], error: BatchError) -> Done<SettleOutcome> {
    let units = units.iter().map(|unit| (unit.id, unit.attempts)).collect();
    Done::RollBack(SettleOutcome::Failed { units, error })
}

/// A unit that another batch holds, where exactly it is asked for: the wait for it would be over some time.
pub(super) fn none_is_held(held: &BTreeSet<i64>, units: &[Unit]) -> Result<(), StoreError> {
    match units.iter().find(|unit| held.contains(&unit.id)) {
        None => Ok(()),
        Some(unit) => Err(StoreError::TryAgain {
            operation: OPERATION,
            code: "55P03".to_owned(),
            detail: format!("unit {} is held by another batch", unit.id),
        }),
    }
}

/// Settles a batch whose effect is a hook's.
pub(super) async fn marked(
    tenure: &MemoryTenure,
    run: &OpenRun,
    pick: &UnitPick,
    hook: &Arc<dyn BatchHook>,
) -> Fenced<SettleOutcome> {
    let claim = tenure.claim();
    // The claim writes nothing, but holds.
    let claimed = tenure.fenced(Kind::Begin, OPERATION, |state, now| {
        let mut held = tenure.store().held();
        let units = state.picked(claim, run.id, pick, &held, now);
        none_is_held(&held, &units)?;
        held.extend(units.iter().map(|unit| unit.id));
        Ok(Done::RollBack(Held { store: tenure.store().clone(), units }))
    });
    let held = match claimed.await? {
        Entered::Mine(held) if held.units.is_empty() => return Ok(Entered::Mine(SettleOutcome::Nothing)),
        Entered::Mine(held) => held,
        Entered::Fenced(found) => return Ok(Entered::Fenced(found)),
        Entered::Halted(halt) => return Ok(Entered::Halted(halt)),
    };
    let keys: Vec<String> = held.units.iter().map(|unit| unit.key.clone()).collect();
    let verdict = hook.run(&keys).await;
    let ended = |detail: &str| StoreError::Unreachable { operation: OPERATION, detail: detail.to_owned() };
    if tenure.has_ended() {
        return Err(ended("the tenure's sessions were ended"));
    }
    tenure.store().operate(OPERATION, |state, now| {
        // Halted meanwhile: the halt waits for what has begun. Overtaken: the advance has ended this session.
        if !matches!(state.enter(claim, Kind::Record), Entered::Mine(())) {
            return Err(ended("an advance of the fence ended the session"));
        }
        Ok(match verdict {
            Ok(()) => Done::Commit(SettleOutcome::Settled(state.mark(claim, run.id, &held.units, now))),
            Err(error) => failed(&held.units, error),
        }
        .map(Entered::Mine))
    })
}

impl MemoryState {
    /// Settles units, and nothing else.
    fn mark(&mut self, claim: &Claim, run: i64, units: &[Unit], now: chrono::DateTime<chrono::Utc>) -> BatchCounts {
        let taken = units.len() as u64;
        let last_unit = units.last().map_or(0, |unit| unit.id);
        let counts = BatchCounts { settled: taken, taken, last_unit, ..BatchCounts::default() };
        let batch = self.add_batch(claim, run, &counts, now);
        let (xact, term) = (self.xact(), claim.term.get());
        for unit in units {
            if let Some(unit) = self.units.get_mut(&unit.id) {
                unit.end(UnitState::Settled, Some(batch), term, xact, now);
            }
        }
        BatchCounts { batch, ..counts }
    }

    /// Calls of the election that are on the wire.
    pub(super) fn on_the_wire(&self, election: &ElectionName) -> u64 {
        let sending = |found: &&super::rows::Instruction| {
            found.election == *election && found.state == crate::domain::instruction::InstructionState::Sending
        };
        self.instructions.values().filter(sending).count() as u64
    }
}

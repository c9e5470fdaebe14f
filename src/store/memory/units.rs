//! Units: planned page by page, charged, and the end of their run found.

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::jobs::span;
use super::rows::{Batch, Unit};
use super::state::{Done, MemoryState, is_due};
use crate::domain::Claim;
use crate::domain::instruction::InstructionState;
use crate::domain::money::Currency;
use crate::domain::run::RunState;
use crate::domain::unit::UnitState;
use crate::store::bounds::{bounded, wait};
use crate::store::{BatchCounts, Charge, FinishOutcome, OpenRun, PlanOutcome, PlanSource, StoreError, UnitPick};

/// A unit that is to be planned.
type Planned = (String, Option<(Currency, String)>);

impl MemoryState {
    /// Writes one page; the last page opens the run.
    pub(super) fn plan_page(
        &mut self,
        claim: &Claim,
        run: &OpenRun,
        source: &PlanSource,
        after: Option<&str>,
        limit: u32,
    ) -> Result<Done<PlanOutcome>, StoreError> {
        let found = self.run_or("plan_page", claim, run.id)?;
        if found.state != RunState::Planning {
            return Ok(Done::RollBack(PlanOutcome::NotPlanning(found.state)));
        }
        if let Some(error) = found.why.clone() {
            return Ok(Done::RollBack(PlanOutcome::SetAside { error }));
        }
        let limit = usize::try_from(limit.max(1)).unwrap_or(usize::MAX);
        let answered = match source {
            PlanSource::Query(query) => match self.answers.get(query) {
                Some(keys) => &PlanSource::Keys(keys.clone()),
                None => return Ok(self.give_up_unplanned(run.id)),
            },
            PlanSource::Ledger(_) | PlanSource::Keys(_) => source,
        };
        let (page, next) = match answered {
            PlanSource::Query(_) => return Ok(self.give_up_unplanned(run.id)),
            PlanSource::Ledger(definition) => {
                let mut pairs = self.pairs(run, definition);
                pairs.retain(|pair| after.is_none_or(|after| pair.0.as_str() > after));
                pairs.truncate(limit);
                let last = pairs.last().map(|pair| pair.0.clone());
                let next = last.filter(|_| pairs.len() >= limit);
                (pairs, next)
            }
            PlanSource::Keys(keys) => {
                let left: BTreeSet<&String> =
                    keys.iter().filter(|key| after.is_none_or(|after| key.as_str() > after)).collect();
                let page: Vec<Planned> = left.iter().take(limit).map(|key| ((*key).clone(), None)).collect();
                let next = page.last().map(|last| last.0.clone()).filter(|_| page.len() < left.len());
                (page, next)
            }
        };
        let units = page.into_iter().filter(|planned| self.add_unit(claim, run.id, planned)).count() as u64;
        if let (None, Some(run)) = (&next, self.runs.get_mut(&run.id)) {
            run.state = RunState::Open;
        }
        Ok(Done::Commit(PlanOutcome::Planned { units, next }))
    }

    /// A query means nothing here: the run is given up, as one whose query fails.
    fn give_up_unplanned(&mut self, run: i64) -> Done<PlanOutcome> {
        let error = "the store in memory answers no query".to_owned();
        if let Some(run) = self.runs.get_mut(&run) {
            run.why = Some(error.clone());
        }
        Done::Commit(PlanOutcome::SetAside { error })
    }

    /// Adds a unit that the run does not have.
    fn add_unit(&mut self, claim: &Claim, run: i64, (key, ledger): &Planned) -> bool {
        if self.units_of(run).any(|unit| unit.key == *key) {
            return false;
        }
        let id = self.next_id();
        let unit = Unit {
            id,
            run_id: run,
            election: claim.election.clone(),
            key: key.clone(),
            ledger: ledger.clone(),
            state: UnitState::Pending,
            attempts: 0,
            next_attempt_at: None,
            last_error: None,
            generation: 0,
            net: None,
            batch_id: None,
            term: None,
            xact: None,
            ended_at: None,
        };
        self.units.insert(id, unit);
        true
    }

    /// The units that a pick takes, in the order of ids: none of a run that is not open. Those that another batch holds are
    /// passed over, but where exactly they are asked for.
    pub(super) fn picked(
        &self,
        claim: &Claim,
        run: i64,
        pick: &UnitPick,
        held: &BTreeSet<i64>,
        now: DateTime<Utc>,
    ) -> Vec<Unit> {
        if !self.is_open(&claim.election, run) {
            return Vec::new();
        }
        let pending = self.units_of(run).filter(|unit| unit.state == UnitState::Pending);
        let free = |unit: &&Unit| !held.contains(&unit.id);
        let most = |limit: u32| usize::try_from(limit).unwrap_or(usize::MAX);
        let mut units: Vec<Unit> = match pick {
            UnitPick::Fresh { after, limit } => {
                let due = pending.filter(|unit| unit.attempts == 0 && unit.id > *after).filter(free);
                due.take(most(*limit)).cloned().collect()
            }
            UnitPick::Retry { limit } => {
                let due = |unit: &&Unit| unit.attempts > 0 && is_due(unit.next_attempt_at, now);
                let mut due: Vec<Unit> = pending.filter(due).filter(free).cloned().collect();
                due.sort_by_key(|unit| unit.next_attempt_at);
                due.truncate(most(*limit));
                due
            }
            UnitPick::Exactly(ids) => pending.filter(|unit| ids.contains(&unit.id)).cloned().collect(),
        };
        units.sort_unstable_by_key(|unit| unit.id);
        units
    }

    /// The row of a batch that ends units.
    pub(super) fn add_batch(&mut self, claim: &Claim, run: i64, counts: &BatchCounts, now: DateTime<Utc>) -> i64 {
        let id = self.next_id();
        let xact = self.xact();
        self.batches.push(Batch {
            id,
            run_id: run,
            election: claim.election.clone(),
            term: claim.term.get(),
            settled: counts.settled,
            carried: counts.carried,
            empty: counts.empty,
            set_aside: 0,
            instructions: counts.instructions,
            committed_at: now,
            xact,
        });
        id
    }

    /// Counts on a batch's row the units that it set aside.
    pub(super) fn count_set_aside(&mut self, batch: Option<i64>) {
        let aside = |unit: &&Unit| unit.state == UnitState::SetAside && batch.is_some() && unit.batch_id == batch;
        let count = self.units.values().filter(aside).count() as u64;
        if let Some(row) = self.batches.iter_mut().rfind(|row| Some(row.id) == batch) {
            row.set_aside = count;
        }
    }

    /// Charges failed attempts; units that are no longer as expected are left.
    pub(super) fn charge(&mut self, claim: &Claim, run: i64, charges: &[Charge], now: DateTime<Utc>) -> Done<u64> {
        let as_expected: Vec<&Charge> = charges
            .iter()
            .filter(|charge| {
                self.units.get(&charge.unit).is_some_and(|unit| {
                    unit.run_id == run
                        && unit.election == claim.election
                        && unit.state == UnitState::Pending
                        && unit.attempts == charge.attempts
                })
            })
            .collect();
        let ends = as_expected.iter().any(|charge| charge.again_in.is_none());
        let batch = ends.then(|| self.add_batch(claim, run, &BatchCounts::default(), now));
        let (xact, term) = (self.xact(), claim.term.get());
        for charge in &as_expected {
            let Some(unit) = self.units.get_mut(&charge.unit) else { continue };
            unit.attempts += 1;
            unit.last_error = Some(bounded(&charge.error));
            match charge.again_in {
                Some(again_in) => unit.next_attempt_at = Some(now + span(wait(again_in))),
                None => unit.end(UnitState::SetAside, batch, term, xact, now),
            }
        }
        let units = as_expected.len() as u64;
        self.count_set_aside(batch);
        Done::Commit(units)
    }

    /// Ends the run, or says what is pending.
    pub(super) fn finish_run(
        &mut self,
        claim: &Claim,
        run: i64,
        now: DateTime<Utc>,
    ) -> Result<Done<FinishOutcome>, StoreError> {
        let state = self.run_or("finish_run", claim, run)?.state;
        if state != RunState::Open {
            return Ok(Done::RollBack(FinishOutcome::NotOpen(state)));
        }
        let (mut units, mut fresh, mut next) = (0, 0, None::<DateTime<Utc>>);
        for unit in self.units_of(run).filter(|unit| unit.state == UnitState::Pending) {
            let call = self.call_of(unit);
            units += 1;
            fresh += u64::from(unit.attempts == 0 && call.is_none());
            // What is on the wire waits for nothing here.
            if call.is_none_or(|call| call.state != InstructionState::Sending) {
                let waits = unit.next_attempt_at.max(call.and_then(|call| call.next_attempt_at));
                next = [next, waits].into_iter().flatten().min();
            }
        }
        if units > 0 {
            let next_in = next.map(|at| (at - now).to_std().unwrap_or(Duration::ZERO));
            return Ok(Done::RollBack(FinishOutcome::Pending { units, fresh, next_in }));
        }
        let aside = self.units_of(run).any(|unit| unit.state == UnitState::SetAside);
        let ended = if aside { RunState::CompleteSetAside } else { RunState::Complete };
        if let Some(run) = self.runs.get_mut(&run) {
            run.state = ended;
            run.finished_at = Some(now);
        }
        Ok(Done::Commit(FinishOutcome::Finished(ended)))
    }
}

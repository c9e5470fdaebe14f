//! What a promotion finds of the terms before it, and the note of who works on a run.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};

use super::rows::Run;
use super::state::{Done, MemoryState};
use crate::domain::Claim;
use crate::domain::run::{RunKind, RunState};
use crate::domain::unit::UnitState;
use crate::store::bounds::OPEN_RUNS;
use crate::store::records::why_given_up_for_deaths;
use crate::store::{DEATHS_BEFORE_SET_ASIDE, GiveUpOutcome, OpenRun, Pulse, Recovery, RequestState, StoreError};

/// Ends of a term whose leader lived on: no death over its runs.
const LIVED_ON: &[&str] = &[
    "drain",
    "cordoned",
    "transfer",
    "session_lost",
    "lease_gone",
    "leader_key_gone",
    "leader_key_taken",
    "ineligible",
    "fenced",
];

impl Run {
    /// Whether it has work in that election.
    fn is_work_of(&self, claim: &Claim) -> bool {
        self.election == claim.election && self.state.is_open()
    }

    fn open(&self) -> OpenRun {
        OpenRun {
            id: self.id,
            job_id: self.job_id,
            definition: self.definition.clone(),
            kind: self.kind,
            request_id: self.request_id,
            tick: self.tick,
            due_at: self.due_at,
            cutoff_at: self.cutoff_at,
            value_date: self.value_date,
            state: self.state,
            caught_up: self.caught_up,
            opened_at: self.opened_at,
            elsewhere: false,
            given_up: self.why.clone().filter(|_| self.state.is_open()),
        }
    }
}

impl MemoryState {
    pub(super) fn pulse(&self, claim: &Claim, now: DateTime<Utc>) -> Pulse {
        let waits = |request: &&super::rows::Request| {
            request.election == claim.election && request.result == RequestState::Waiting
        };
        Pulse {
            now,
            requests: self.requests.iter().filter(waits).count() as u64,
            open_runs: self.runs.values().filter(|run| run.is_work_of(claim)).count() as u64,
            jobs: self.jobs.values().filter(|job| job.is_of(claim)).count() as u64,
        }
    }

    /// Oldest due first, and with them what another election opened of jobs that are of this one or have runs open here. Of a job
    /// with many, and of each of its requests, those that come next.
    pub(super) fn open_runs(&self, claim: &Claim) -> Vec<OpenRun> {
        let mine = self.runs.values().filter(|run| run.is_work_of(claim));
        let mut jobs: BTreeSet<i64> =
            mine.clone().filter(|run| run.kind == RunKind::Tick).map(|run| run.job_id).collect();
        jobs.extend(self.jobs.values().filter(|job| job.is_of(claim)).map(|job| job.id));
        let elsewhere = self.runs.values().filter(|run| {
            run.election != claim.election
                && run.state.is_open()
                && run.kind == RunKind::Tick
                && jobs.contains(&run.job_id)
        });
        let mut runs: Vec<OpenRun> = mine.map(Run::open).collect();
        runs.extend(elsewhere.map(|run| OpenRun { elsewhere: true, ..run.open() }));
        let each = usize::try_from(OPEN_RUNS).unwrap_or(usize::MAX);
        let mut by_queue: BTreeMap<_, Vec<OpenRun>> = BTreeMap::new();
        for run in runs {
            by_queue.entry((run.job_id, run.request_id, run.caught_up)).or_default().push(run);
        }
        let mut next = Vec::new();
        for mut queue in by_queue.into_values() {
            queue.sort_by_key(|run| (run.due_at, run.id));
            let newest: BTreeSet<i64> = queue.iter().rev().take(each).map(|run| run.id).collect();
            queue.sort_by_key(|run| (run.given_up.is_none(), run.state != RunState::Open, run.due_at, run.id));
            next.extend(queue.into_iter().enumerate().filter(|(place, run)| *place < each || newest.contains(&run.id)));
        }
        let mut next: Vec<OpenRun> = next.into_iter().map(|(_, run)| run).collect();
        next.sort_by_key(|run| (run.due_at, run.id));
        next
    }

    /// Notes that this term works on a run.
    pub(super) fn begin_work(&mut self, claim: &Claim, run: i64) -> Done<()> {
        match self.runs.get_mut(&run).filter(|run| run.is_work_of(claim)) {
            Some(run) => {
                run.worked_term = Some(claim.term.get());
                Done::Commit(())
            }
            None => Done::RollBack(()),
        }
    }

    /// A planned end: nobody died over these runs.
    pub(super) fn release(&mut self, claim: &Claim) -> Done<()> {
        for run in self.runs.values_mut() {
            if run.is_work_of(claim) && run.worked_term == Some(claim.term.get()) {
                run.worked_term = None;
            }
        }
        Done::Commit(())
    }

    /// Turns what lower terms left on the wire, counts their deaths, gives up the runs that killed too many.
    pub(super) fn recover(&mut self, claim: &Claim, now: DateTime<Utc>) -> Done<Recovery> {
        let calls_unknown = self.doubt_lower_terms(claim, now);
        let taken: Vec<(i64, i64)> = self
            .runs
            .values()
            .filter(|run| run.is_work_of(claim) && run.why.is_none())
            .filter_map(|run| run.worked_term.filter(|term| *term < claim.term.get()).map(|term| (run.id, term)))
            .collect();
        let mut runs_set_aside = Vec::new();
        for (id, term) in &taken {
            let progress = self.batches.iter().any(|batch| batch.run_id == *id && batch.term == *term);
            let lived = self.terms.iter().map(|row| &row.view).any(|view| {
                view.election == claim.election
                    && view.term == *term
                    && view.end_reason.as_deref().is_some_and(|reason| LIVED_ON.contains(&reason))
            });
            let Some(run) = self.runs.get_mut(id) else { continue };
            run.worked_term = None;
            run.deaths = match (progress, lived) {
                (true, _) => 0,
                (false, true) => run.deaths,
                (false, false) => run.deaths + 1,
            };
            if run.deaths >= DEATHS_BEFORE_SET_ASIDE {
                run.why = Some(why_given_up_for_deaths());
                runs_set_aside.push(*id);
            }
        }
        let runs_taken_over = taken.len() as u64;
        Done::Commit(Recovery { calls_unknown, runs_set_aside, runs_taken_over })
    }

    /// One page of a run that is given up.
    pub(super) fn give_up(
        &mut self,
        claim: &Claim,
        run: i64,
        after: i64,
        limit: u32,
        now: DateTime<Utc>,
    ) -> Result<Done<GiveUpOutcome>, StoreError> {
        let found = self.run_or("give_up", claim, run)?;
        let (state, deadly) = (found.state, found.deaths >= DEATHS_BEFORE_SET_ASIDE);
        let Some(why) = found.why.clone().filter(|_| state.is_open()) else {
            return Ok(Done::RollBack(GiveUpOutcome::NotGivenUp(state)));
        };
        let limit = usize::try_from(limit.max(1)).unwrap_or(usize::MAX);
        let pending = self.units_of(run).filter(|unit| unit.state == UnitState::Pending && unit.id > after);
        let mut page: Vec<i64> = pending.map(|unit| unit.id).collect();
        page.sort_unstable();
        page.truncate(limit);
        let (xact, term) = (self.xact(), claim.term.get());
        for id in &page {
            if !deadly {
                self.units.remove(id);
            } else if let Some(unit) = self.units.get_mut(id) {
                unit.last_error = Some(why.clone());
                unit.end(UnitState::SetAside, None, term, xact, now);
            }
        }
        if let Some(after) = page.last().filter(|_| page.len() >= limit) {
            return Ok(Done::Commit(GiveUpOutcome::Going { after: *after }));
        }
        if self.units_of(run).any(|unit| unit.state == UnitState::Pending) {
            return Ok(Done::Commit(GiveUpOutcome::Going { after: 0 }));
        }
        if let Some(run) = self.runs.get_mut(&run) {
            run.was_planning = state == RunState::Planning;
            run.state = RunState::CompleteSetAside;
            run.finished_at = Some(now);
        }
        Ok(Done::Commit(GiveUpOutcome::Ended(RunState::CompleteSetAside)))
    }
}

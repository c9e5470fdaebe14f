//! What commands, the status page and metrics read.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};

use super::rows::{Instruction, Released, Run, Unit};
use super::state::MemoryState;
use crate::domain::ElectionName;
use crate::domain::instruction::{InstructionKind, InstructionState};
use crate::domain::job::{HandlerDefinition, PayoutDefinition};
use crate::domain::money::Currency;
use crate::domain::run::RunKind;
use crate::domain::unit::UnitState;
use crate::store::{
    ElectionStatus, HistoryView, InstructionView, JobCarries, JobStatus, RunFilter, RunSummary, RunView, StatusView,
    StoreFigures, UnitCounts, UnitFilter, UnitView,
};

/// The most runs that ended which `status` shows.
const ENDED_RUNS: usize = 20;

/// An amount in major units, also one that is wider than the range.
pub(super) fn major(currency: Currency, minor: i128) -> String {
    let exponent = usize::from(currency.exponent());
    let sign = if minor < 0 { "-" } else { "" };
    let digits = format!("{:0>width$}", minor.unsigned_abs(), width = exponent + 1);
    let (whole, fraction) = digits.split_at(digits.len() - exponent);
    if exponent == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
}

impl MemoryState {
    /// Jobs with open carries, by name.
    pub(super) fn carries(&self) -> Vec<JobCarries> {
        let mut counts: BTreeMap<i64, u64> = BTreeMap::new();
        for entry in self.entries.values().filter(|entry| entry.is_open()) {
            if let Some(job) = entry.job_id {
                *counts.entry(job).or_default() += 1;
            }
        }
        let of = |(id, entries): (i64, u64)| {
            let job = self.jobs.get(&id)?;
            Some(JobCarries { job: job.definition.name.clone(), removed: job.removed_at.is_some(), entries })
        };
        let mut carries: Vec<JobCarries> = counts.into_iter().filter_map(of).collect();
        carries.sort_by(|one, other| one.job.cmp(&other.job));
        carries
    }
}

fn millis(time: TimeDelta) -> i64 {
    time.num_milliseconds().max(0)
}

impl Instruction {
    fn view(&self) -> InstructionView {
        InstructionView {
            key: self.key.clone(),
            kind: self.kind.as_str().to_owned(),
            state: self.state.as_str().to_owned(),
            reason: self.reason.map(str::to_owned),
            amount: self.payout.as_ref().map(|(_, currency, amount)| currency.format(*amount)),
            currency: self.payout.as_ref().map(|(_, currency, _)| currency.code().to_owned()),
            attempts: self.attempts,
            in_doubt: self.in_doubt,
            term: self.term,
        }
    }
}

impl MemoryState {
    fn counts(&self, run: i64) -> UnitCounts {
        let mut counts = UnitCounts::default();
        for unit in self.units_of(run) {
            counts.total += 1;
            match unit.state {
                UnitState::Pending => counts.pending += 1,
                UnitState::Settled => counts.settled += 1,
                UnitState::Carried => counts.carried += 1,
                UnitState::Empty => counts.empty += 1,
                UnitState::SetAside => counts.set_aside += 1,
            }
        }
        counts
    }

    fn summary(&self, run: &Run, now: DateTime<Utc>) -> RunSummary {
        RunSummary {
            id: run.id,
            job: run.job.clone(),
            election: run.election.clone(),
            kind: run.kind,
            tick: run.tick,
            due_at: run.due_at,
            state: run.state,
            why: run.why.clone(),
            overdue: run.state.is_open() && run.deadline_at.is_some_and(|deadline| deadline < now),
            lateness_ms: millis(run.opened_at - run.due_at),
            opened_term: run.opened_term,
            opened_at: run.opened_at,
            finished_at: run.finished_at,
            units: self.counts(run.id),
        }
    }

    /// All runs, newest due first.
    fn newest(&self) -> Vec<&Run> {
        let mut runs: Vec<&Run> = self.runs.values().collect();
        runs.sort_by_key(|run| std::cmp::Reverse((run.due_at, run.id)));
        runs
    }

    pub(super) fn runs_view(&self, filter: &RunFilter, limit: usize, now: DateTime<Utc>) -> Vec<RunSummary> {
        let below = match filter.below {
            None => None,
            Some(id) => match self.runs.get(&id) {
                Some(run) => Some((run.due_at, run.id)),
                None => return Vec::new(),
            },
        };
        self.newest()
            .into_iter()
            .filter(|run| filter.job.as_ref().is_none_or(|job| *job == run.job))
            .filter(|run| filter.state.is_none_or(|state| state == run.state))
            .filter(|run| below.is_none_or(|below| (run.due_at, run.id) < below))
            .take(limit)
            .map(|run| self.summary(run, now))
            .collect()
    }

    pub(super) fn run_view(&self, run: i64, now: DateTime<Utc>) -> Option<RunView> {
        let run = self.runs.get(&run)?;
        let mut batches: BTreeMap<i64, u64> = BTreeMap::new();
        for batch in self.batches.iter().filter(|batch| batch.run_id == run.id) {
            *batches.entry(batch.term).or_default() += 1;
        }
        let mut paid: BTreeMap<Currency, i128> = BTreeMap::new();
        for (_, currency, amount) in
            self.instructions.values().filter(|found| found.run_id == run.id).filter_map(|found| found.payout.as_ref())
        {
            *paid.entry(*currency).or_default() += i128::from(*amount);
        }
        Some(RunView {
            summary: self.summary(run, now),
            cutoff_at: run.cutoff_at,
            value_date: run.value_date,
            fingerprint: run.fingerprint.clone(),
            calendar_fingerprint: run
                .definition
                .timing
                .business_days
                .as_ref()
                .map(|days| days.calendar.fingerprint.clone()),
            request_id: run.request_id,
            batches: batches.into_iter().collect(),
            paid_out: paid.into_iter().map(|(c, sum)| (c.code().to_owned(), major(c, sum))).collect(),
            deaths: run.deaths,
        })
    }

    pub(super) fn units_view(&self, filter: &UnitFilter, limit: usize) -> Vec<UnitView> {
        self.units
            .values()
            .filter(|unit| filter.run.is_none_or(|run| run == unit.run_id))
            .filter(|unit| filter.state.is_none_or(|state| state == unit.state))
            .filter(|unit| filter.key.as_ref().is_none_or(|key| *key == unit.key))
            .filter(|unit| filter.above.is_none_or(|above| unit.id > above))
            .take(limit)
            .map(|unit| self.unit_view(unit))
            .collect()
    }

    pub(super) fn unit_view(&self, unit: &Unit) -> UnitView {
        let currency = unit.ledger.as_ref().map(|(currency, _)| *currency);
        UnitView {
            id: unit.id,
            run: unit.run_id,
            key: unit.key.clone(),
            state: unit.state,
            attempts: unit.attempts,
            next_attempt_at: unit.next_attempt_at,
            last_error: unit.last_error.clone(),
            term: unit.term,
            net: unit.net.zip(currency).map(|(net, currency)| currency.format(net)),
            ended_at: unit.ended_at,
            instructions: self
                .instructions
                .values()
                .filter(|found| found.unit_id == unit.id)
                .map(Instruction::view)
                .collect(),
        }
    }

    pub(super) fn status(&self, now: DateTime<Utc>) -> StatusView {
        let (open, ended): (Vec<&Run>, Vec<&Run>) = self.newest().into_iter().partition(|run| run.state.is_open());
        let shown = open.into_iter().chain(ended.into_iter().take(ENDED_RUNS));
        StatusView {
            now,
            deployment_id: Some(self.deployment),
            elections: self.fences.keys().filter_map(|election| self.election_status(election)).collect(),
            jobs: self.job_statuses(),
            runs: shown.map(|run| self.summary(run, now)).collect(),
            cordons: self.cordons.values().cloned().collect(),
            fencing_rejects: self.rejects.len() as u64,
        }
    }

    fn election_status(&self, election: &ElectionName) -> Option<ElectionStatus> {
        let fence = self.fence_of(election)?;
        let term = self.terms.iter().map(|row| &row.view).find(|view| {
            view.election == *election
                && view.term == fence.holder.term.get()
                && view.tenure_id == fence.holder.tenure_id.0
        });
        Some(ElectionStatus {
            election: election.clone(),
            fence,
            leader: term.map(|view| view.replica.clone()),
            accepted_at: term.map(|view| view.accepted_at),
            ended: term.and_then(|view| view.end_reason.clone()),
        })
    }

    fn job_statuses(&self) -> Vec<JobStatus> {
        let mut jobs: Vec<JobStatus> = self
            .jobs
            .values()
            .filter(|job| job.removed_at.is_none())
            .map(|job| {
                let ticks = self.runs.values().filter(|run| run.job_id == job.id && run.kind == RunKind::Tick);
                let last = ticks.max_by_key(|run| run.tick);
                JobStatus {
                    job: job.definition.name.clone(),
                    election: job.election.clone(),
                    handler: job.definition.handler.as_str().to_owned(),
                    fingerprint: job.fingerprint.clone(),
                    evaluated_until: job.evaluated_until,
                    last_tick: last.map(|run| run.tick),
                    last_state: last.map(|run| run.state),
                    paused: job.paused.as_ref().map(|pause| pause.reason.clone()),
                    definition: serde_json::to_value(&job.definition).unwrap_or_default(),
                }
            })
            .collect();
        jobs.sort_by(|one, other| one.job.cmp(&other.job));
        jobs
    }

    pub(super) fn history(&self, limit: usize) -> HistoryView {
        let mut terms: Vec<_> = self.terms.iter().map(|row| row.view.clone()).collect();
        terms.sort_by(|one, other| {
            let by_time = other.accepted_at.cmp(&one.accepted_at);
            by_time.then(one.election.cmp(&other.election)).then(other.term.cmp(&one.term))
        });
        terms.truncate(limit);
        HistoryView {
            terms,
            rejects: self.rejects.iter().rev().take(limit).cloned().collect(),
            acts: self.acts.iter().rev().take(limit).map(|act| act.view.clone()).collect(),
        }
    }

    pub(super) fn figures(&self, election: &ElectionName, now: DateTime<Utc>) -> StoreFigures {
        let mut figures = StoreFigures::default();
        let (mut runs, mut units) = (BTreeMap::new(), BTreeMap::new());
        for run in self.runs.values().filter(|run| run.election == *election && run.state.is_open()) {
            *runs.entry((run.job.clone(), run.state.as_str())).or_insert((run.state, 0)) =
                (run.state, runs.get(&(run.job.clone(), run.state.as_str())).map_or(0, |found: &(_, u64)| found.1) + 1);
            for state in UnitState::ALL {
                let count = self.units_of(run.id).filter(|unit| unit.state == state).count() as u64;
                let sum = units.entry((run.job.clone(), state.as_str())).or_insert((state, 0));
                sum.1 += count;
            }
            figures.runs_overdue += u64::from(run.deadline_at.is_some_and(|deadline| deadline < now));
            if self.units_of(run.id).any(|unit| unit.state == UnitState::Pending) {
                let age = u64::try_from((now - run.opened_at).num_seconds()).unwrap_or(0);
                figures.oldest_pending_seconds = figures.oldest_pending_seconds.max(age);
            }
        }
        figures.runs = runs.into_iter().map(|((job, _), (state, count))| (job, state, count)).collect();
        figures.units = units.into_iter().map(|((job, _), (state, count))| (job, state, count)).collect();
        for state in InstructionState::ALL {
            let mine = |found: &&Instruction| {
                found.kind == InstructionKind::Payout && found.election == *election && found.state == state
            };
            let count = self.instructions.values().filter(mine).count() as u64;
            if count > 0 && !state.is_final() {
                figures.payouts.push((state, count));
            }
        }
        figures.oldest_payout_seconds = self.oldest_payout(election, now);
        for stop in self.receivers.values().filter_map(|receiver| receiver.stop.as_ref()) {
            let (again, needs_resume) = &mut figures.receivers_stopped;
            *(if stop.needs_resume { needs_resume } else { again }) += 1;
        }
        figures.fencing_rejects = self.rejects.len() as u64;
        let ahead = self.jobs.values().filter(|job| job.election == *election && job.removed_at.is_none());
        let ahead = ahead.map(|job| (job.evaluated_until - now).num_seconds()).max().unwrap_or(0);
        figures.ticks_held_back_seconds = u64::try_from(ahead).unwrap_or(0);
        figures.halted = self.fences.get(election).is_some_and(|row| row.halt.is_some());
        figures
    }

    /// The age of the oldest payout that could be sent, in seconds.
    fn oldest_payout(&self, election: &ElectionName, now: DateTime<Utc>) -> u64 {
        let sends = |job: i64| match self.jobs.get(&job).map(|row| &row.definition.handler) {
            Some(HandlerDefinition::Ledger(ledger)) => matches!(ledger.payout, PayoutDefinition::Http(_)),
            _ => false,
        };
        let on_hold =
            |found: &Instruction| found.payout.as_ref().is_some_and(|payout| self.holds.contains_key(&payout.0));
        let waits = |found: &&Instruction| {
            found.kind == InstructionKind::Payout
                && found.election == *election
                && found.state == InstructionState::Pending
                && found.release != Released::Waiting
                && !on_hold(found)
                && sends(found.job_id)
        };
        let oldest = self.instructions.values().filter(waits).map(|found| found.created_at).min();
        oldest.map_or(0, |since| u64::try_from((now - since).num_seconds()).unwrap_or(0))
    }

    /// Payouts among the instructions, for the audit.
    pub(super) fn payouts(&self) -> impl Iterator<Item = (&Instruction, &(String, Currency, i64))> {
        self.instructions
            .values()
            .filter(|found| found.kind == InstructionKind::Payout)
            .filter_map(|found| found.payout.as_ref().map(|payout| (found, payout)))
    }
}

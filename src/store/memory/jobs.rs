//! Job rows and ticks: the definition in force, and how far its ticks were evaluated.

use std::collections::BTreeSet;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::rows::{Job, Run};
use super::state::{Done, MemoryState};
use crate::domain::job::JobDefinition;
use crate::domain::run::RunKind;
use crate::domain::{Claim, ElectionName, JobName};
use crate::store::{
    JobChange, JobChangeOutcome, JobRow, JobsView, PauseView, RequestKind, RequestState, TakeOverOutcome, TickFate,
    TickRecord, TicksOutcome, TicksRecord,
};

impl Job {
    pub(super) fn row(&self) -> JobRow {
        JobRow {
            id: self.id,
            definition: self.definition.clone(),
            fingerprint: self.fingerprint.clone(),
            evaluated_until: self.evaluated_until,
            paused: self.paused.as_ref().map(|pause| pause.reason.clone()),
            pauses: self.pauses.clone(),
        }
    }

    /// Whether it is a job of that election now.
    pub(super) fn is_of(&self, claim: &Claim) -> bool {
        self.election == claim.election && self.removed_at.is_none()
    }

    /// Whether it is the row that the caller read.
    fn is_as_read(&self, read: &JobRow) -> bool {
        self.removed_at.is_none()
            && self.id == read.id
            && self.fingerprint == read.fingerprint
            && self.evaluated_until == read.evaluated_until
            // A pause is in force with the next transaction.
            && self.paused.as_ref().map(|pause| &pause.reason) == read.paused.as_ref()
    }
}

/// A span as the store's time adds it; too long a one is a year.
pub(super) fn span(time: Duration) -> TimeDelta {
    TimeDelta::from_std(time).unwrap_or(TimeDelta::days(366))
}

impl MemoryState {
    pub(super) fn jobs_view(&self, claim: &Claim, now: DateTime<Utc>) -> JobsView {
        let mine = self.jobs.values().filter(|job| job.is_of(claim));
        let mut jobs: Vec<JobRow> = mine.map(Job::row).collect();
        jobs.sort_by(|one, other| one.definition.name.cmp(&other.definition.name));
        JobsView { now, jobs, unreadable: Vec::new() }
    }

    /// What the old definition owed, then the new one.
    pub(super) fn change_job(
        &mut self,
        claim: &Claim,
        change: &JobChange,
        now: DateTime<Utc>,
    ) -> Done<JobChangeOutcome> {
        let found = self.jobs.values().find(|job| job.definition.name == change.name);
        match (found, &change.expected) {
            (Some(found), _) if found.removed_at.is_none() && found.election != claim.election => {
                Done::RollBack(JobChangeOutcome::OtherElection(found.election.as_str().to_owned()))
            }
            (Some(found), Some(read)) if found.is_as_read(read) && found.evaluated_until <= change.evaluated_until => {
                if change.reaches() > Some(now) {
                    return Done::RollBack(JobChangeOutcome::NotYet { now });
                }
                let id = found.id;
                self.insert_ticks(claim, id, &change.settled, now);
                Done::Commit(self.replace(claim, id, change, now))
            }
            (None, None) => match &change.definition {
                Some(definition) => {
                    let id = self.next_id();
                    Done::Commit(self.start(claim, id, definition, now, None))
                }
                None => Done::RollBack(JobChangeOutcome::Changed(None)),
            },
            (Some(found), None) if found.removed_at.is_some() => match &change.definition {
                Some(definition) => {
                    let (id, from) = (found.id, found.evaluated_until.max(now));
                    // A pause that lasts is an operator's word, and no edit of a schedule takes it back.
                    let paused = found.paused.clone();
                    Done::Commit(self.start(claim, id, definition, from, paused))
                }
                None => Done::RollBack(JobChangeOutcome::Changed(None)),
            },
            (Some(_) | None, Some(_)) | (Some(_), None) => Done::RollBack(JobChangeOutcome::Moved),
        }
    }

    /// A job that is new or comes back.
    fn start(
        &mut self,
        claim: &Claim,
        id: i64,
        definition: &JobDefinition,
        evaluated_until: DateTime<Utc>,
        paused: Option<PauseView>,
    ) -> JobChangeOutcome {
        let job = Job {
            id,
            election: claim.election.clone(),
            definition: definition.clone(),
            fingerprint: definition.fingerprint(),
            evaluated_until,
            paused,
            pauses: Vec::new(),
            removed_at: None,
            term: claim.term.get(),
        };
        let row = job.row();
        self.jobs.insert(id, job);
        JobChangeOutcome::Changed(Some(Box::new(row)))
    }

    fn replace(&mut self, claim: &Claim, id: i64, change: &JobChange, now: DateTime<Utc>) -> JobChangeOutcome {
        let Some(job) = self.jobs.get_mut(&id) else { return JobChangeOutcome::Moved };
        job.evaluated_until = change.evaluated_until;
        job.term = claim.term.get();
        if let Some(definition) = &change.definition {
            job.definition = definition.clone();
            job.fingerprint = definition.fingerprint();
            JobChangeOutcome::Changed(Some(Box::new(job.row())))
        } else {
            job.removed_at = Some(now);
            JobChangeOutcome::Changed(None)
        }
    }

    /// A job goes over to the claim's election as it is; what was asked for and not executed comes along.
    pub(super) fn take_over(&mut self, claim: &Claim, name: &JobName, from: &ElectionName) -> Done<TakeOverOutcome> {
        if let Some(halt) = self.fence_of(from).and_then(|fence| fence.halt) {
            return Done::RollBack(TakeOverOutcome::Halted(halt));
        }
        let there = |job: &&mut Job| {
            job.definition.name == *name && job.election == *from && *from != claim.election && job.removed_at.is_none()
        };
        let Some(job) = self.jobs.values_mut().find(there) else {
            return Done::RollBack(TakeOverOutcome::NotThere);
        };
        job.election = claim.election.clone();
        job.definition.election = claim.election.clone();
        job.fingerprint = job.definition.fingerprint();
        job.term = claim.term.get();
        let row = job.row();
        for request in self.requests.iter_mut().filter(|request| request.election == *from) {
            let of_job = match &request.kind {
                RequestKind::Trigger { job, .. } | RequestKind::Backfill { job, .. } => job == name,
                RequestKind::RetryUnits { .. } => false,
            };
            if of_job && request.result == RequestState::Waiting {
                request.election = claim.election.clone();
            }
        }
        Done::Commit(TakeOverOutcome::Taken(Box::new(row)))
    }

    pub(super) fn record_ticks(
        &mut self,
        claim: &Claim,
        record: &TicksRecord,
        now: DateTime<Utc>,
    ) -> Done<TicksOutcome> {
        let as_read = self.jobs.get(&record.job.id).is_some_and(|job| {
            job.election == claim.election
                && job.is_as_read(&record.job)
                && job.evaluated_until <= record.evaluated_until
        });
        if !as_read {
            return Done::RollBack(TicksOutcome::Moved);
        }
        if record.evaluated_until > now {
            return Done::RollBack(TicksOutcome::NotYet { now });
        }
        let (opened, written) = self.insert_ticks(claim, record.job.id, &record.ticks, now);
        if let Some(job) = self.jobs.get_mut(&record.job.id) {
            job.evaluated_until = record.evaluated_until;
            job.term = claim.term.get();
        }
        let duplicates = u32::try_from(record.ticks.len().saturating_sub(written)).unwrap_or(u32::MAX);
        Done::Commit(TicksOutcome::Recorded { opened, duplicates })
    }

    /// Those of these ticks that have a row.
    pub(super) fn recorded(&self, ticks: &[(i64, DateTime<Utc>)]) -> BTreeSet<(i64, DateTime<Utc>)> {
        let of_ticks = self.runs.values().filter(|run| run.kind == RunKind::Tick).map(|run| (run.job_id, run.tick));
        of_ticks.filter(|found| ticks.contains(found)).collect()
    }

    /// One run row per tick that has none; answers those that have work, and how many rows are new.
    fn insert_ticks(
        &mut self,
        claim: &Claim,
        job: i64,
        ticks: &[TickRecord],
        now: DateTime<Utc>,
    ) -> (Vec<(DateTime<Utc>, Duration)>, usize) {
        let (mut opened, mut written) = (Vec::new(), 0);
        for tick in ticks {
            let there = self.runs.values().any(|r| r.job_id == job && r.kind == RunKind::Tick && r.tick == tick.tick);
            let Some(run) = self.run_row(claim, job, tick, now).filter(|_| !there) else { continue };
            if run.state.is_open() {
                opened.push((tick.tick, (now - tick.due_at).to_std().unwrap_or(Duration::ZERO)));
            }
            written += 1;
            self.runs.insert(run.id, run);
        }
        (opened, written)
    }

    /// A run of a job, under the definition that is in force.
    pub(super) fn run_row(&mut self, claim: &Claim, job: i64, tick: &TickRecord, now: DateTime<Utc>) -> Option<Run> {
        let id = self.next_id();
        let xact = self.xact();
        let job = self.jobs.get(&job)?;
        let state = tick.fate.state();
        let deadline = job.definition.timing.run_deadline.filter(|_| state.is_open());
        let (why, caught_up) = match &tick.fate {
            TickFate::Open { caught_up } => (None, *caught_up),
            TickFate::Skipped(why) | TickFate::Coalesced(why) | TickFate::Missed(why) => (Some(why.clone()), false),
        };
        Some(Run {
            id,
            job_id: job.id,
            job: job.definition.name.clone(),
            election: claim.election.clone(),
            kind: RunKind::Tick,
            request_id: None,
            tick: tick.tick,
            due_at: tick.due_at,
            cutoff_at: tick.cutoff_at,
            value_date: tick.value_date,
            definition: job.definition.clone(),
            fingerprint: job.fingerprint.clone(),
            state,
            why,
            caught_up,
            deadline_at: deadline.map(|deadline| tick.due_at + span(deadline)),
            opened_term: claim.term.get(),
            opened_at: now,
            finished_at: (!state.is_open()).then_some(now),
            worked_term: None,
            deaths: 0,
            was_planning: false,
            xact,
        })
    }
}

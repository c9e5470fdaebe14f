//! What recording the ticks of several jobs decides, whatever the database: which of them still are as the planner read them.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::{JobRow, TickRecord, TicksOutcome, TicksRecord};
use crate::domain::Claim;

/// A job's row as the transaction that records finds it, locked.
pub(super) struct FoundJob<'a> {
    pub(super) election: &'a str,
    pub(super) fingerprint: &'a str,
    pub(super) evaluated_until: DateTime<Utc>,
    pub(super) paused: Option<&'a str>,
    pub(super) removed: bool,
}

impl FoundJob<'_> {
    fn is_as_read(&self, claim: &Claim, record: &TicksRecord) -> bool {
        let job = &record.job;
        self.election == claim.election.as_str()
            && self.fingerprint == job.fingerprint
            && self.evaluated_until == job.evaluated_until
            // A pause is in force with the next transaction.
            && self.paused == job.paused.as_deref()
            && !self.removed
            && job.evaluated_until <= record.evaluated_until
    }
}

/// What inserting the ticks of a job did.
#[derive(Debug, Default)]
pub(super) struct Written {
    /// Rows that are new.
    pub(super) rows: usize,
    /// Of those, the runs that have work, with their lateness.
    pub(super) opened: Vec<(DateTime<Utc>, Duration)>,
}

/// Ticks on their way into the store.
pub(super) struct Recording<'a> {
    records: &'a [TicksRecord],
    outcomes: Vec<TicksOutcome>,
}

impl<'a> Recording<'a> {
    /// `now` is the store's, read once the rows were locked.
    pub(super) fn decide(
        claim: &Claim,
        records: &'a [TicksRecord],
        found: &BTreeMap<i64, FoundJob<'_>>,
        now: DateTime<Utc>,
    ) -> Self {
        let outcome = |record: &TicksRecord| {
            if !found.get(&record.job.id).is_some_and(|job| job.is_as_read(claim, record)) {
                TicksOutcome::Moved
            } else if record.evaluated_until > now && !crate::mutant!("ticks.before-the-stores-clock") {
                TicksOutcome::NotYet { now }
            } else {
                TicksOutcome::Recorded { opened: Vec::new(), duplicates: 0 }
            }
        };
        Self { records, outcomes: records.iter().map(outcome).collect() }
    }

    /// The records that go in.
    pub(super) fn sound(&self) -> Vec<&'a TicksRecord> {
        let both = self.records.iter().zip(&self.outcomes);
        both.filter(|(_, outcome)| matches!(outcome, TicksOutcome::Recorded { .. })).map(|(record, _)| record).collect()
    }

    /// Their ticks, each with its job.
    pub(super) fn ticks(&self) -> Vec<(&'a JobRow, &'a TickRecord)> {
        self.sound().into_iter().flat_map(|record| record.ticks.iter().map(|tick| (&record.job, tick))).collect()
    }

    /// Nothing goes in.
    pub(super) fn refused(self) -> Vec<TicksOutcome> {
        self.outcomes
    }

    /// What went in, by job: a tick without a new row had one.
    pub(super) fn written(mut self, mut written: BTreeMap<i64, Written>) -> Vec<TicksOutcome> {
        for (outcome, record) in self.outcomes.iter_mut().zip(self.records) {
            if let TicksOutcome::Recorded { opened, duplicates } = outcome {
                let of_job = written.remove(&record.job.id).unwrap_or_default();
                *duplicates = u32::try_from(record.ticks.len().saturating_sub(of_job.rows)).unwrap_or(u32::MAX);
                *opened = of_job.opened;
            }
        }
        self.outcomes
    }
}

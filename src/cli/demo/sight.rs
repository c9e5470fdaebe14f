//! What the store says at one moment, as far as the story needs it. Pure.

use uuid::Uuid;

use crate::store::{FenceReject, RunSummary, TermView};

/// One look at the store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Sight {
    /// Newest first.
    pub(super) terms: Vec<TermView>,
    /// Newest due first.
    pub(super) runs: Vec<RunSummary>,
    /// Newest first.
    pub(super) rejects: Vec<FenceReject>,
}

/// Units by how far they are, over all runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Progress {
    /// Runs that have ended.
    pub(super) runs: u64,
    /// Units that have ended.
    pub(super) units: u64,
    /// Units of the runs that are open, and how many of them have ended.
    pub(super) open: Option<(u64, u64)>,
}

/// Units of a run that have ended.
pub(super) const fn ended_units(run: &RunSummary) -> u64 {
    run.units.total.saturating_sub(run.units.pending)
}

impl Sight {
    /// The newest term, where it has worked and is not known to have ended.
    pub(super) fn leader(&self) -> Option<&TermView> {
        self.terms
            .iter()
            .max_by_key(|term| term.term)
            .filter(|term| term.worked_at.is_some() && term.ended_at.is_none())
    }

    /// A run of which some units have ended and others have not.
    pub(super) fn mid_run(&self) -> Option<&RunSummary> {
        let half = |run: &&RunSummary| run.state.is_open() && run.units.pending > 0 && ended_units(run) > 0;
        self.runs.iter().filter(half).min_by_key(|run| run.id)
    }

    /// The runs that are open.
    pub(super) fn open_runs(&self) -> Vec<i64> {
        self.runs.iter().filter(|run| run.state.is_open()).map(|run| run.id).collect()
    }

    /// Whether a claim of this tenure was refused.
    pub(super) fn is_refused(&self, tenure: Uuid) -> bool {
        self.refusal(tenure).is_some()
    }

    /// The first refusal of this tenure's claim.
    pub(super) fn refusal(&self, tenure: Uuid) -> Option<&FenceReject> {
        self.rejects.iter().rev().find(|reject| reject.presented.tenure_id.0 == tenure)
    }

    /// How far everything is.
    pub(super) fn progress(&self) -> Progress {
        let open: Vec<&RunSummary> = self.runs.iter().filter(|run| run.state.is_open()).collect();
        Progress {
            runs: self.runs.iter().filter(|run| !run.state.is_open()).count() as u64,
            units: self.runs.iter().map(ended_units).sum(),
            open: (!open.is_empty())
                .then(|| (open.iter().map(|run| ended_units(run)).sum(), open.iter().map(|run| run.units.total).sum())),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use chrono::{DateTime, TimeDelta, Utc};

    use super::*;
    use crate::domain::run::{RunKind, RunState};
    use crate::domain::{Claim, ElectionName, JobName, TenureId, Term};
    use crate::store::UnitCounts;

    pub(in super::super) fn at(second: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::seconds(second)
    }

    pub(in super::super) fn sight() -> Sight {
        Sight::default()
    }

    pub(in super::super) fn term(number: i64, worked: bool) -> TermView {
        TermView {
            election: ElectionName::new("settlement").expect("a name"),
            term: number,
            tenure_id: Uuid::from_u128(u128::try_from(number).expect("not negative")),
            replica: format!("demo-{number}"),
            host: "host".to_owned(),
            version: "0".to_owned(),
            accepted_at: at(number),
            worked_at: worked.then(|| at(number)),
            ended_at: None,
            end_reason: None,
        }
    }

    /// A run whose id is also its tick's second.
    pub(in super::super) fn run(id: i64, state: RunState, ended: u64, pending: u64) -> RunSummary {
        RunSummary {
            id,
            job: JobName::new("payouts").expect("a name"),
            election: ElectionName::new("settlement").expect("a name"),
            kind: RunKind::Tick,
            tick: at(id),
            due_at: at(id),
            state,
            why: None,
            overdue: false,
            lateness_ms: 0,
            opened_term: 1,
            opened_at: at(id),
            finished_at: None,
            units: UnitCounts { total: ended + pending, pending, settled: ended, ..UnitCounts::default() },
        }
    }

    pub(in super::super) fn refusal(tenure: u128) -> FenceReject {
        FenceReject {
            presented: Claim {
                election: ElectionName::new("settlement").expect("a name"),
                term: Term::new(1).expect("not negative"),
                tenure_id: TenureId(Uuid::from_u128(tenure)),
            },
            found: None,
            operation: "settle".to_owned(),
            replica: "demo-1".to_owned(),
            at: at(1),
        }
    }

    #[test]
    fn the_middle_of_a_run_has_units_on_both_sides() {
        let mut seen = sight();
        for (ended, pending) in [(0, 5), (5, 0)] {
            seen.runs = vec![run(1, RunState::Open, ended, pending)];
            assert_eq!(seen.mid_run(), None, "{ended} ended, {pending} pending");
        }
        seen.runs = vec![run(2, RunState::Planning, 0, 3), run(1, RunState::Open, 1, 4)];
        assert_eq!(seen.mid_run().map(|run| run.id), Some(1));
    }

    #[test]
    fn progress_counts_units_over_all_runs() {
        let mut seen = sight();
        assert_eq!(seen.progress(), Progress::default());
        seen.runs = vec![run(2, RunState::Open, 1, 4), run(1, RunState::Complete, 7, 0)];
        assert_eq!(seen.progress(), Progress { runs: 1, units: 8, open: Some((1, 5)) });
    }

    #[test]
    fn a_term_that_has_ended_leads_no_more() {
        let mut seen = sight();
        seen.terms = vec![TermView { ended_at: Some(at(9)), ..term(2, true) }, term(1, true)];
        assert_eq!(seen.leader(), None, "also where an earlier one was never noted to have ended");
    }
}

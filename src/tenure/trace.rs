//! Spans of a tenure's work, noted when each is over. Nothing is computed where nobody takes them.

use super::scope::{Stop, Tenure};
use crate::clock;
use crate::domain::{JobName, Moment};
use crate::store::OpenRun;
use crate::telemetry::{Span, Work};

/// What a stop means for the work that it broke off.
pub(super) const fn broken_off(stop: &Stop) -> (&'static str, bool) {
    match stop {
        Stop::Ending => ("left to the next term", false),
        Stop::Halted => ("halted", false),
        Stop::Failed(_) => ("failed", true),
    }
}

impl Tenure {
    /// Notes work that began then and is over now.
    pub(super) fn traced(
        &self,
        work: Work,
        of: (&JobName, i64),
        began: Moment,
        (outcome, failed): (&'static str, bool),
    ) {
        if !self.deps.observer.takes_spans() {
            return;
        }
        let (Some(began_at), Some(ended_at)) = (self.clock.at(began), self.clock.at(clock::boottime())) else { return };
        let (job, run) = (of.0.clone(), of.1);
        self.deps.observer.span(&Span {
            work,
            deployment: self.store.deployment(),
            election: self.claim.election.clone(),
            term: self.claim.term,
            job,
            run,
            began_at,
            ended_at,
            outcome,
            failed,
        });
    }

    /// Notes the tick of a run that is worked on for the first time: from its due time to its opening.
    pub(super) fn traced_tick(&self, run: &OpenRun) {
        if !self.deps.observer.takes_spans() {
            return;
        }
        self.deps.observer.span(&Span {
            work: Work::Tick,
            deployment: self.store.deployment(),
            election: self.claim.election.clone(),
            term: self.claim.term,
            job: run.definition.name.clone(),
            run: run.id,
            began_at: run.due_at.min(run.opened_at),
            ended_at: run.opened_at,
            outcome: if run.caught_up { "caught up" } else { "opened" },
            failed: false,
        });
    }
}

//! The stories of terms, over rows that are values.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};

use super::rows::{JournalKind, TermRow};
use super::state::{Done, MemoryState};
use crate::domain::Claim;
use crate::domain::run::RunState;
use crate::store::stories::payout_ends;
use crate::store::{
    ActView, Promotion, Refused, STORIES_TOLD, STORY_ACTS, StoryFilter, TakenOver, TermBefore, TermStory, TermView,
    TermWork,
};

fn micros(micros: i64) -> TimeDelta {
    TimeDelta::microseconds(micros)
}

impl MemoryState {
    /// The first note stays; one on a tenure that was never accepted is left.
    pub(super) fn note_promotion(&mut self, claim: &Claim, promotion: &Promotion, now: DateTime<Utc>) -> Done<()> {
        let row = self.terms.iter_mut().find(|row| {
            let view = &row.view;
            view.election == claim.election && view.term == claim.term.get() && view.tenure_id == claim.tenure_id.0
        });
        let Some(row) = row else { return Done::RollBack(()) };
        if row.promotion.is_none() {
            let won_at = (now - micros(promotion.micros().0)).min(row.view.accepted_at);
            row.promotion = Some((promotion.clone(), won_at));
        }
        Done::Commit(())
    }

    /// The stories of terms, newest first.
    pub(super) fn stories(&self, filter: &StoryFilter) -> Vec<TermStory> {
        let mut rows: Vec<&TermRow> = self
            .terms
            .iter()
            .filter(|row| filter.election.as_ref().is_none_or(|election| row.view.election == *election))
            .filter(|row| filter.term.is_none_or(|term| row.view.term == term))
            .collect();
        rows.sort_by(|TermRow { view: one, .. }, TermRow { view: other, .. }| {
            let by_time = other.accepted_at.cmp(&one.accepted_at);
            by_time.then(one.election.cmp(&other.election)).then(other.term.cmp(&one.term))
        });
        rows.truncate(usize::try_from(filter.limit.clamp(1, STORIES_TOLD)).unwrap_or(usize::MAX));
        rows.into_iter().map(|row| self.story(row)).collect()
    }

    fn story(&self, row: &TermRow) -> TermStory {
        let view = &row.view;
        let held = self
            .fence_of(&view.election)
            .is_some_and(|fence| fence.holder.term.get() == view.term && fence.holder.tenure_id.0 == view.tenure_id);
        let earlier = self
            .terms
            .iter()
            .map(|row| &row.view)
            .filter(|other| other.election == view.election && other.term < view.term);
        let before = earlier.max_by_key(|other| (other.term, other.accepted_at)).map(|other| TermBefore {
            term: other.term,
            replica: other.replica.clone(),
            ended_at: other.ended_at,
            end_reason: other.end_reason.clone(),
        });
        let noted = row.promotion.as_ref();
        TermStory {
            term: view.clone(),
            in_force: held,
            before,
            stood_at: noted.and_then(|(promotion, won_at)| Some(*won_at - micros(promotion.micros().1?))),
            won_at: noted.map(|(_, won_at)| *won_at),
            handed_over: noted.map(|(promotion, _)| promotion.handed_over),
            taken_over: noted.map(|(promotion, _)| TakenOver {
                runs: promotion.recovery.runs_taken_over,
                set_aside: promotion.recovery.runs_set_aside.len() as u64,
                unknown: promotion.recovery.calls_unknown,
            }),
            work: self.work_of(view),
            refused: self.refused_of(view),
            acts: self.acts_under(view),
        }
    }

    fn work_of(&self, view: &TermView) -> TermWork {
        let mut work = TermWork::default();
        for run in self.runs.values().filter(|run| run.election == view.election && run.opened_term == view.term) {
            match run.state {
                RunState::Skipped | RunState::Coalesced | RunState::Missed => work.ticks_without_run += 1,
                RunState::Planning | RunState::Open | RunState::Complete | RunState::CompleteSetAside => {
                    work.runs_opened += 1;
                }
            }
        }
        for batch in self.batches.iter().filter(|batch| batch.election == view.election && batch.term == view.term) {
            work.batches += 1;
            work.settled += batch.settled;
            work.carried += batch.carried;
            work.empty += batch.empty;
            work.set_aside += batch.set_aside;
            work.instructions += batch.instructions;
        }
        let mut ends = [0; 3];
        for journal in self.journals.iter().filter(|found| found.election == view.election && found.term == view.term) {
            match journal.kind {
                JournalKind::Settle => {}
                JournalKind::Paid => ends[0] += 1,
                JournalKind::Rejected => ends[1] += 1,
                JournalKind::Returned => ends[2] += 1,
            }
        }
        work.payouts = payout_ends(ends);
        work
    }

    fn refused_of(&self, view: &TermView) -> Vec<Refused> {
        let mut by_operation: BTreeMap<&str, Refused> = BTreeMap::new();
        for reject in self.rejects.iter().filter(|reject| {
            let presented = &reject.presented;
            presented.election == view.election
                && presented.term.get() == view.term
                && presented.tenure_id.0 == view.tenure_id
        }) {
            let fresh = || Refused { operation: reject.operation.clone(), count: 0, last_at: reject.at };
            let found = by_operation.entry(&reject.operation).or_insert_with(fresh);
            found.count += 1;
            found.last_at = found.last_at.max(reject.at);
        }
        let mut refused: Vec<Refused> = by_operation.into_values().collect();
        refused.sort_by(|one, other| one.last_at.cmp(&other.last_at).then(one.operation.cmp(&other.operation)));
        refused
    }

    /// Those that found this term in force, and of those that look at no term what was done on its election, or on none, from its
    /// acceptance to the next one's; but for imports, and cordons of other replicas.
    fn acts_under(&self, view: &TermView) -> Vec<ActView> {
        let accepted = self.terms.iter().map(|row| &row.view).filter(|other| other.election == view.election);
        let next = accepted.map(|other| other.accepted_at).filter(|at| *at > view.accepted_at).min();
        let under = self.acts.iter().filter(|act| match (&act.election, act.view.term) {
            (Some(election), Some(term)) => *election == view.election && term == view.term,
            (None, Some(_)) => false,
            (election, None) => {
                election.as_ref().is_none_or(|election| *election == view.election)
                    && act.view.action != "import"
                    && (!["cordon", "uncordon"].contains(&act.view.action.as_str()) || act.view.target == view.replica)
                    && act.view.at >= view.accepted_at
                    && next.is_none_or(|next| act.view.at < next)
            }
        });
        under.take(usize::try_from(STORY_ACTS).unwrap_or(usize::MAX)).map(|act| act.view.clone()).collect()
    }
}

//! The fence: advancing, halting, resuming, and the notes on terms.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::rows::{ActRow, FenceRow, TermRow};
use super::state::{Done, MemoryState};
use crate::domain::{Claim, ElectionName, TenureId, Term};
use crate::store::{
    ActView, Actor, AdvanceOutcome, BindOutcome, CoordinatorBinding, Fence, FenceHolder, Halt, HaltReport, Leader,
    Lineage, TermView,
};

/// The user by which bursar halts by itself.
const ITSELF: &str = "bursar";
/// What stands between an operator's reason and bursar's own.
const ADDED: &str = "; bursar: ";
/// The database role of acts: there is only one.
const ROLE: &str = "memory";

/// An act, as it is written down.
pub(super) struct Act<'a> {
    pub(super) action: &'a str,
    pub(super) target: String,
    pub(super) reason: Option<&'a str>,
    pub(super) election: Option<&'a ElectionName>,
    pub(super) already: bool,
    pub(super) baseline: Option<Lineage>,
}

impl<'a> Act<'a> {
    /// One on what belongs to no election.
    pub(super) fn on_none(action: &'a str, target: &str, reason: &'a str) -> Self {
        Self { action, target: target.to_owned(), reason: Some(reason), election: None, already: false, baseline: None }
    }
}

impl MemoryState {
    /// Puts a claim in force, or says whose is.
    pub(super) fn advance(&mut self, claim: &Claim, leader: &Leader, now: DateTime<Utc>) -> Done<AdvanceOutcome> {
        let holder = FenceHolder { term: claim.term, tenure_id: claim.tenure_id };
        let halt = match self.fences.get(&claim.election) {
            Some(found) if found.holder == holder => {
                return Done::RollBack(AdvanceOutcome::Accepted { halt: found.halt.clone() });
            }
            Some(found) if found.holder.term >= claim.term => {
                return Done::RollBack(AdvanceOutcome::Lost(found.holder));
            }
            Some(found) => found.halt.clone(),
            None => None,
        };
        let snapshot = self.snapshot();
        self.fences.insert(claim.election.clone(), FenceRow { holder, halt: halt.clone() });
        let view = TermView {
            election: claim.election.clone(),
            term: claim.term.get(),
            tenure_id: claim.tenure_id.0,
            replica: leader.replica.clone(),
            host: leader.host.clone(),
            version: leader.version.clone(),
            accepted_at: now,
            worked_at: None,
            ended_at: None,
            end_reason: None,
        };
        self.terms.push(TermRow { view, promotion: None, snapshot });
        Done::Commit(AdvanceOutcome::Accepted { halt })
    }

    pub(super) fn fence_of(&self, election: &ElectionName) -> Option<Fence> {
        self.fences.get(election).map(|row| Fence { holder: row.holder, halt: row.halt.clone() })
    }

    pub(super) fn bind(&mut self, coordinator: &CoordinatorBinding) -> Done<BindOutcome> {
        let bound = BindOutcome::Bound { deployment_id: self.deployment };
        match &self.binding {
            None => {
                self.binding = Some(coordinator.clone());
                Done::Commit(bound)
            }
            Some(found) if found == coordinator => Done::RollBack(bound),
            Some(found) => Done::RollBack(BindOutcome::Other(found.clone())),
        }
    }

    /// The first note stays; one on a tenure that was never accepted is left.
    pub(super) fn note_work(&mut self, claim: &Claim, at: DateTime<Utc>) -> Done<()> {
        let Some(view) = self.term_of(claim) else { return Done::RollBack(()) };
        view.worked_at.get_or_insert(at);
        Done::Commit(())
    }

    /// The first note stays; one on a tenure that was never accepted is left.
    pub(super) fn note_end(&mut self, claim: &Claim, reason: &str, at: DateTime<Utc>) -> Done<()> {
        let Some(view) = self.term_of(claim) else { return Done::RollBack(()) };
        view.ended_at.get_or_insert(at.max(view.accepted_at));
        view.end_reason.get_or_insert_with(|| reason.to_owned());
        Done::Commit(())
    }

    fn term_of(&mut self, claim: &Claim) -> Option<&mut TermView> {
        self.terms.iter_mut().map(|row| &mut row.view).find(|view| {
            view.election == claim.election && view.term == claim.term.get() && view.tenure_id == claim.tenure_id.0
        })
    }

    /// The elections that there are, in the order of their names.
    pub(super) fn elections(&self) -> Vec<ElectionName> {
        let jobs = self.jobs.values().filter(|job| job.removed_at.is_none()).map(|job| &job.election);
        let runs = self.runs.values().filter(|run| run.state.is_open()).map(|run| &run.election);
        let all: std::collections::BTreeSet<_> = self.fences.keys().chain(jobs).chain(runs).cloned().collect();
        all.into_iter().collect()
    }

    pub(super) fn halt(
        &mut self,
        election: &ElectionName,
        reason: &str,
        actor: &Actor,
        now: DateTime<Utc>,
    ) -> HaltReport {
        let by = format!("{}@{}", actor.user, actor.host);
        let nobody = FenceHolder { term: Term::NONE, tenure_id: TenureId(Uuid::nil()) };
        let row = self.fences.entry(election.clone()).or_insert(FenceRow { holder: nobody, halt: None });
        let already = match &mut row.halt {
            None => {
                row.halt = Some(Halt { reason: reason.to_owned(), since: now, by });
                false
            }
            // Added once: whoever resumes must read it.
            Some(halt) if actor.user == ITSELF && !halt.by.starts_with("bursar@") && !halt.reason.contains(ADDED) => {
                halt.reason = format!("{}{ADDED}{reason}", halt.reason);
                false
            }
            Some(_) => true,
        };
        self.switched("halt", election, reason, actor, already, None, now)
    }

    pub(super) fn resume(
        &mut self,
        election: &ElectionName,
        reason: &str,
        actor: &Actor,
        now: DateTime<Utc>,
    ) -> HaltReport {
        let taken_back = self.fences.get_mut(election).and_then(|row| row.halt.take());
        let accepted = self.lineage();
        self.switched("resume", election, reason, actor, taken_back.is_none(), Some(accepted), now)
    }

    #[expect(clippy::too_many_arguments, reason = "what one switch is made of, in one place")]
    fn switched(
        &mut self,
        action: &'static str,
        election: &ElectionName,
        reason: &str,
        actor: &Actor,
        already: bool,
        baseline: Option<Lineage>,
        now: DateTime<Utc>,
    ) -> HaltReport {
        let act = Act {
            action,
            target: election.as_str().to_owned(),
            reason: Some(reason),
            election: Some(election),
            already,
            baseline,
        };
        self.act(actor, act, now);
        HaltReport { election: election.clone(), already, on_the_wire: self.on_the_wire(election), waited_ms: 0 }
    }

    /// Writes an act down.
    pub(super) fn act(&mut self, actor: &Actor, act: Act<'_>, now: DateTime<Utc>) {
        // The term found counts where the election itself, or what is under its gate, was acted on.
        let term = match act.action {
            "halt" | "resume" | "transfer" | "payouts resolve" | "units resolve" | "payouts release" | "pause"
            | "unpause" => act.election.and_then(|e| self.fences.get(e)).map(|row| row.holder.term.get()),
            _ => None,
        };
        let view = ActView {
            at: now,
            action: act.action.to_owned(),
            target: act.target,
            reason: act.reason.map(str::to_owned),
            by: format!("{}@{}", actor.user, actor.host),
            role: ROLE.to_owned(),
            term,
        };
        let election = act.election.cloned();
        self.acts.push(ActRow { view, election, already: act.already, baseline: act.baseline });
    }

    /// Where it stood when an operator last took a halt back, and when.
    pub(super) fn resumed_baseline(&self, election: &ElectionName) -> Option<(Lineage, DateTime<Utc>)> {
        self.acts.iter().rev().find_map(|act| {
            let resumed = act.view.action == "resume" && act.election.as_ref() == Some(election) && !act.already;
            act.baseline.clone().filter(|_| resumed).map(|baseline| (baseline, act.view.at))
        })
    }
}

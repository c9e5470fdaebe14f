//! What the process may show of the machine: for status, readiness and metrics.

use std::time::Duration;

use super::Machine;
use super::election::{Election, Phase};
use crate::domain::{Claim, ElectionName, Moment, Term};
use crate::leadership::reason::{ElectionPhase, SessionState, Suspicion};
use crate::leadership::record::{LeaderRecord, LeaseId, Members};

/// One election, as this replica stands in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ElectionView {
    /// The election.
    pub election: ElectionName,
    /// Where it stands.
    pub phase: ElectionPhase,
    /// Since when, in boot time.
    pub since: Moment,
    /// Why this replica may not lead it, for people; `None` if it may.
    pub ineligible: Option<String>,
    /// The tenure held, from the win to its reported end.
    pub claim: Option<Claim>,
    /// Whether the store has accepted that tenure, and it is not ending. Not yet "leads now": ask its gate.
    pub accepted: bool,
    /// The last term that the coordinator is known to have issued.
    pub term: Term,
    /// The leader's record as last read; its own for a leader.
    pub leader: Option<LeaderRecord>,
    /// When the coordinator last told of it, in boot time; the machine itself does not keep it.
    pub seen_at: Option<Moment>,
}

/// The whole of leadership at this replica.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeadershipView {
    /// Where the session stands.
    pub session: SessionState,
    /// Why it is suspect.
    pub suspicion: Option<Suspicion>,
    /// The lease held.
    pub lease: Option<LeaseId>,
    /// When the session is lost unless renewed, in boot time.
    pub deadline: Option<Moment>,
    /// Whether the coordinator answered last; `None` before the first answer.
    pub coordinator_up: Option<bool>,
    /// Why it did not, in the words of the last operation that failed; the machine itself knows none.
    pub trouble: Option<String>,
    /// Its members, as last asked.
    pub members: Members,
    /// Replicas registered, as last counted.
    pub replicas: u32,
    /// Whether this one is registered.
    pub registered: bool,
    /// Whether it is leaving.
    pub draining: bool,
    /// Whether it is cordoned.
    pub cordoned: bool,
    /// The elections, by name.
    pub elections: Vec<ElectionView>,
}

impl LeadershipView {
    /// Time until the session is lost; zero without one.
    #[must_use]
    pub fn remaining(&self, now: Moment) -> Duration {
        self.deadline.map_or(Duration::ZERO, |deadline| deadline.since(now))
    }

    /// One election.
    #[must_use]
    pub fn election(&self, name: &ElectionName) -> Option<&ElectionView> {
        self.elections.iter().find(|view| view.election == *name)
    }
}

impl Machine {
    /// What may be shown now. `members` is what the shell learnt last.
    #[must_use]
    pub fn view(&self, members: Members) -> LeadershipView {
        let held = self.session.held();
        LeadershipView {
            session: self.session.state(),
            suspicion: held.and_then(|held| held.suspicion),
            lease: held.map(|held| held.lease),
            deadline: held.map(|held| held.window.deadline()),
            coordinator_up: self.coordinator_up,
            trouble: None,
            members,
            replicas: self.replicas,
            registered: self.registered,
            draining: self.leaving.has_begun(),
            cordoned: self.cordoned,
            elections: self.elections.values().map(view_of).collect(),
        }
    }

    /// The tenures that may be at work: led, accepted, not ending, on a session that is not lost at `now`.
    #[must_use]
    pub fn leads(&self, now: Moment) -> Vec<Claim> {
        let live = self.session.held().is_some_and(|held| held.window.deadline() > now);
        let leading = self.elections.values().filter(|_| live).filter_map(|election| match &election.phase {
            Phase::Leading(tenure) if tenure.accepted => Some(tenure.claim.clone()),
            Phase::Leading(_)
            | Phase::Observing
            | Phase::Waiting
            | Phase::ReadingFence
            | Phase::Campaigning { .. }
            | Phase::Settling
            | Phase::Ending(_)
            | Phase::Clearing { .. } => None,
        });
        leading.collect()
    }
}

fn view_of(election: &Election) -> ElectionView {
    let (phase, tenure, accepted) = match &election.phase {
        Phase::Observing if election.stands_back => (ElectionPhase::StandingBack, None, false),
        Phase::Observing => (ElectionPhase::Observing, None, false),
        Phase::Waiting => (ElectionPhase::Waiting, None, false),
        Phase::ReadingFence => (ElectionPhase::ReadingFence, None, false),
        Phase::Campaigning { .. } => (ElectionPhase::Campaigning, None, false),
        Phase::Settling => (ElectionPhase::Settling, None, false),
        Phase::Leading(tenure) if tenure.accepted => (ElectionPhase::Active, Some(tenure), true),
        Phase::Leading(tenure) => (ElectionPhase::Promoting, Some(tenure), false),
        Phase::Ending(ending) => (ElectionPhase::Ending, Some(&ending.tenure), false),
        Phase::Clearing { .. } => (ElectionPhase::Clearing, None, false),
    };
    let claim = tenure.map(|tenure| tenure.claim.clone());
    let term = claim.as_ref().map_or(election.issued(), |claim| election.issued().max(claim.term));
    ElectionView {
        election: election.name.clone(),
        phase,
        since: election.since,
        ineligible: election.eligible.clone().err(),
        claim,
        accepted,
        term,
        leader: election.seen.as_ref().and_then(|seen| seen.leader.as_ref()).and_then(|leader| leader.record.clone()),
        seen_at: None,
    }
}

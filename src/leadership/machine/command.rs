//! What comes out of the machine: commands, notes, timers.

use std::time::Duration;

use super::types::{EndMode, OpId};
use crate::domain::{Claim, ElectionName, Moment, ReplicaId, Term};
use crate::leadership::reason::{EndReason, ExitReason, SessionState, Suspicion, TransitionReason};
use crate::leadership::record::{LeaderRecord, LeaseId, Revision, Vacancy, Win};

/// What the shell is to do, in this order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Command {
    /// Ask for a lease.
    Grant {
        /// Names the answer.
        op: OpId,
        /// The TTL to ask for.
        ttl: Duration,
    },
    /// Renew the lease.
    Renew {
        /// Names the answer.
        op: OpId,
        /// The lease.
        lease: LeaseId,
    },
    /// Revoke a lease.
    Revoke {
        /// Names the answer.
        op: OpId,
        /// The lease.
        lease: LeaseId,
    },
    /// Read an election.
    Read {
        /// Names the answer.
        op: OpId,
        /// The election.
        election: ElectionName,
    },
    /// Watch an election's leader key, in place of an earlier watch.
    Watch {
        /// The election.
        election: ElectionName,
        /// The first revision of interest.
        from: Revision,
    },
    /// Have the fence's term read from the store.
    ReadFence {
        /// The election.
        election: ElectionName,
    },
    /// Try to win.
    Campaign {
        /// Names the answer.
        op: OpId,
        /// What to win: election, term and a new tenure.
        claim: Claim,
        /// The lease to stand on.
        lease: LeaseId,
        /// How the leader key was seen.
        vacancy: Vacancy,
        /// How the term key was seen.
        term_revision: Revision,
    },
    /// Delete the leader key of one's own win.
    Resign {
        /// Names the answer.
        op: OpId,
        /// The election.
        election: ElectionName,
        /// The win.
        won: Win,
    },
    /// Hand the election over: put the successor's record, if the leader key is of one's own win.
    Transfer {
        /// Names the answer.
        op: OpId,
        /// What the successor gets: election, term and a tenure made for it.
        claim: Claim,
        /// The successor; any other that may lead where there is none.
        to: Option<ReplicaId>,
        /// One's own win.
        won: Win,
        /// How the term key was seen.
        term_revision: Revision,
    },
    /// Put the replica's record.
    Register {
        /// Names the answer.
        op: OpId,
        /// The lease to put it on.
        lease: LeaseId,
        /// The elections it may lead.
        eligible: Vec<ElectionName>,
    },
    /// Count the replicas, and the members that answer.
    Survey {
        /// Names the answer.
        op: OpId,
    },
    /// Begin a tenure.
    Begin {
        /// What was won.
        claim: Claim,
        /// The revision of the win.
        won: Revision,
        /// The record that stands.
        record: LeaderRecord,
        /// The session that it stands on.
        lease: LeaseId,
        /// Found on this replica's lease rather than campaigned for: handed over, or won without hearing of it.
        adopted: bool,
        /// Since when this replica saw the place free; `None` where it did not.
        vacant_since: Option<Moment>,
    },
    /// The tenure counts as leading from now on: the store has accepted it.
    Accept {
        /// The tenure.
        claim: Claim,
    },
    /// End a tenure. May be said again, with [`EndMode::Abrupt`].
    End {
        /// The tenure.
        claim: Claim,
        /// How.
        mode: EndMode,
        /// Why.
        reason: EndReason,
    },
    /// The tenure has ended: forget it.
    Forget {
        /// The tenure.
        claim: Claim,
    },
    /// Show gates the session's window: closed from `deadline` on, held from `fresh_until` on.
    Open {
        /// The session.
        lease: LeaseId,
        /// From then on it is lost.
        deadline: Moment,
        /// From then on it is suspect.
        fresh_until: Moment,
    },
    /// Hold the gates: the session is suspect.
    Hold {
        /// The session.
        lease: LeaseId,
    },
    /// Close the gates for good: the session is lost.
    Close {
        /// The session.
        lease: LeaseId,
    },
    /// For metrics and logs.
    Note(Note),
    /// End the process, now.
    Exit(ExitReason),
    /// Everything was handed over and given back: the thread may end.
    Finished,
}

/// What metrics and logs are told.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Note {
    /// Leadership was won or is being given up.
    Transition {
        /// The tenure.
        claim: Claim,
        /// Why.
        reason: TransitionReason,
    },
    /// The session is in another state.
    Session {
        /// The state.
        state: SessionState,
        /// Why it is suspect.
        suspicion: Option<Suspicion>,
    },
    /// A lease was lost.
    Expired {
        /// Why.
        reason: EndReason,
    },
    /// A renewal was answered after this long.
    RenewalTook(Duration),
    /// From the leader's end seen to the win.
    ElectionTook {
        /// The election.
        election: ElectionName,
        /// How long.
        took: Duration,
    },
    /// From the leader's end seen to the first work.
    TakeoverTook {
        /// The election.
        election: ElectionName,
        /// How long.
        took: Duration,
    },
    /// From the order to end to the end.
    TeardownTook {
        /// The election.
        election: ElectionName,
        /// How long.
        took: Duration,
    },
    /// A tenure did not end in time.
    TeardownOverran {
        /// The election.
        election: ElectionName,
    },
    /// Whether the last operation at the coordinator was answered.
    CoordinatorUp(bool),
    /// A hand-over was answered: to whom, or to nobody.
    HandedOver {
        /// The election.
        election: ElectionName,
        /// The successor.
        to: Option<ReplicaId>,
    },
    /// Another leads than before, and not this replica.
    Follows {
        /// The election.
        election: ElectionName,
        /// Who leads.
        leader: ReplicaId,
        /// Under which term.
        term: Term,
    },
    /// A leader key without a lease was found, put by hand: it is taken as absent.
    LeaselessLeader {
        /// The election.
        election: ElectionName,
    },
    /// A leader key that is no record of this replica was found on this replica's lease, put by hand: it is deleted.
    StrangeLeader {
        /// The election.
        election: ElectionName,
    },
    /// The term cannot grow any more: nobody can be elected.
    TermsUsedUp {
        /// The election.
        election: ElectionName,
    },
    /// Not standing for a while.
    StandsBack {
        /// The election.
        election: ElectionName,
        /// How long.
        time: Duration,
    },
}

/// The machine's named timers. Each stands for at most one moment.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Timer {
    /// The session is lost.
    Deadline,
    /// The session is suspect.
    Overdue,
    /// Send a renewal.
    Renew,
    /// Ask for a lease (again).
    Grant,
    /// Put the replica's record (again).
    Register,
    /// Count the replicas.
    Survey,
    /// The workers are stuck.
    Beat,
    /// Give up on the revocation and leave.
    Leave,
    /// Read an election (again).
    Reread(ElectionName),
    /// The jitter is over.
    Stand(ElectionName),
    /// The store did not say the fence's term.
    Fence(ElectionName),
    /// Standing back is over.
    StandBack(ElectionName),
    /// The tenure's end is overdue.
    Teardown(ElectionName),
    /// Delete the leader key (again).
    Clear(ElectionName),
}

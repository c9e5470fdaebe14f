//! What goes into the machine: settings, time and luck, events and reports.

use std::time::Duration;

use crate::domain::{Claim, ElectionName, Moment, ReplicaId, TenureId, Term};
use crate::leadership::record::{
    ElectionState, Grant, LeaderRecord, LeaseId, RegisterOutcome, RenewOutcome, ResignOutcome, Revision,
};

/// What the machine is told once.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Settings {
    /// This process.
    pub me: ReplicaId,
    /// The elections to stand for; at least one.
    pub elections: Vec<ElectionName>,
    /// The TTL to ask for.
    pub ttl: Duration,
    /// How long a tenure has to end when it ends abruptly, and how much before the lease's end that begins.
    pub teardown_budget: Duration,
    /// How long a planned end waits for answers under way.
    pub drain: Duration,
}

/// The time of an event, on both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Now {
    /// Boot time: what everything is counted in.
    pub boot: Moment,
    /// Monotonic time: stands still in a suspend. Only compared.
    pub monotonic: Moment,
}

impl Now {
    /// Both clocks at one reading, for tests and simulators without suspends.
    #[must_use]
    pub const fn both(moment: Moment) -> Self {
        Self { boot: moment, monotonic: moment }
    }
}

/// Randomness for one event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Luck {
    /// For jitter: uniform.
    pub jitter: u64,
    /// For a tenure that may be begun: never seen before.
    pub tenure: TenureId,
}

/// Names one operation at the coordinator. Answers to any but the one waited for are ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OpId(pub u64);

/// An operation failed, or its outcome is unknown. The shell has logged why.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Failed;

/// What a campaign came to, with the record that was put.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Campaigned {
    /// Won.
    Won {
        /// The revision of the win.
        revision: Revision,
        /// What was put.
        record: LeaderRecord,
    },
    /// Lost; this was found.
    Lost(ElectionState),
    /// The lease is gone.
    LeaseGone,
}

/// What a hand-over came to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum HandedOver {
    /// The successor's record stands.
    To(ReplicaId),
    /// Nobody is there who may lead, or something was otherwise than seen: nothing was changed.
    ToNobody,
}

/// Who is there.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Survey {
    /// How many replicas are registered.
    pub replicas: u32,
    /// This replica's own record, where there is one: the lease that it stands on, and the elections that it shows.
    pub own: Option<(LeaseId, Vec<ElectionName>)>,
}

/// What the process tells the session's thread.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Report {
    /// Whether this replica may lead an election, and if not, why. A leader that may not resigns at once.
    Eligible {
        /// The election.
        election: ElectionName,
        /// The reason is for people.
        eligible: Result<(), String>,
    },
    /// An operator took the replica out of leading (`true`), or lets it lead again. A leader resigns as planned.
    Cordoned(bool),
    /// The answer to [`Command::ReadFence`](super::Command::ReadFence).
    FenceTerm {
        /// The election.
        election: ElectionName,
        /// The fence's term; the reason is for people.
        term: Result<Term, String>,
    },
    /// The store has accepted the term.
    Accepted {
        /// The tenure.
        claim: Claim,
    },
    /// The first transaction of kind *begin* after the advance has committed.
    FirstWork {
        /// The tenure.
        claim: Claim,
    },
    /// A step of the promotion failed.
    PromotionFailed {
        /// The tenure.
        claim: Claim,
        /// For people.
        why: String,
    },
    /// The store refused the claim.
    Fenced {
        /// The tenure.
        claim: Claim,
        /// The claim in force, as found.
        found: Option<Claim>,
    },
    /// The tenure failed by itself.
    Fault {
        /// The tenure.
        claim: Claim,
        /// For people.
        why: String,
    },
    /// Nothing of the tenure goes on any more.
    Ended {
        /// The tenure.
        claim: Claim,
    },
    /// The workers live. Once a second, through the worker runtime.
    Beat,
    /// An operator wants this term's leader to hand over. Means nothing to any other term.
    HandOver {
        /// The election.
        election: ElectionName,
        /// The term.
        term: Term,
        /// The successor; any that may lead where there is none.
        to: Option<ReplicaId>,
    },
    /// The replica shows another schedule from now on.
    ScheduleFingerprint(String),
    /// Hand over and leave.
    Drain,
}

/// What happens to the machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Event {
    /// Time has passed: a timer may be due.
    Wake,
    /// A report of the process.
    Reported(Report),
    /// A lease was granted, or not.
    Granted(OpId, Result<Grant, Failed>),
    /// A renewal was answered, or not.
    Renewed(OpId, Result<RenewOutcome, Failed>),
    /// A revocation was answered, or not.
    Revoked(OpId),
    /// An election was read, or not.
    Read(OpId, ElectionName, Result<ElectionState, Failed>),
    /// A campaign was answered, or not.
    Campaigned(OpId, ElectionName, Result<Campaigned, Failed>),
    /// A resignation was answered, or not.
    Resigned(OpId, ElectionName, Result<ResignOutcome, Failed>),
    /// A hand-over was answered, or not.
    Transferred(OpId, ElectionName, Result<HandedOver, Failed>),
    /// The replica's record was put, or not.
    Registered(OpId, Result<RegisterOutcome, Failed>),
    /// The replicas were counted, or not.
    Surveyed(OpId, Result<Survey, Failed>),
    /// An election's watch fired.
    Woken(ElectionName),
    /// An election's watch is over.
    WatchEnded(ElectionName),
}

/// How a tenure is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EndMode {
    /// Stop claiming and sending, let what has begun finish, wait up to `drain` for answers under way.
    Planned {
        /// The longest wait.
        drain: Duration,
    },
    /// Wait for nothing.
    Abrupt,
}

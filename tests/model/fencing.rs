//! Transactions at the fence, statement by statement: the shared lock, the fence's row, the claim of a unit, savepoints,
//! COMMIT and what is known of it; against advances and halts that take the lock exclusively and end who holds it.
//!
//! Two replicas, each with a claim and a unit of its own; both units would bind the same entry. Between any two statements a
//! client may be paused for as long as it likes.

mod steps;

use stateright::{Model, Property};

use crate::check::Fair;
use crate::defect::Defect;

/// A property.
pub const S1: &str = "S1 the store accepts one tenure per term";
/// A property.
pub const S2: &str = "S2 nothing commits under a claim that the store has left behind";
/// A property.
pub const S3: &str = "S3 a unit has one effect, and an entry is posted once";
/// A property.
pub const S6: &str = "S6 nothing is settled while halted";
/// A property.
pub const L1: &str = "L1 an advance waits for nobody who is paused";
/// A property.
pub const L1_TOLD: &str = "L1 whoever the store has accepted is told so, also when asking again";

/// A claim: the term, and whose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Claim {
    /// The term.
    pub term: u8,
    /// The tenure's identity.
    pub tenure: u8,
}

/// What may go wrong, and how often in one history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Faults {
    /// A batch fails in the middle, and is rolled back to its savepoint.
    pub failures: u8,
    /// A COMMIT of a batch is not answered.
    pub unknowns: u8,
    /// A COMMIT of an advance is not answered.
    pub untold: u8,
    /// A replica is killed.
    pub crashes: u8,
    /// An operator halts.
    pub halts: u8,
}

/// A bounded world.
#[derive(Debug, Clone, Copy)]
pub struct Fencing {
    /// What each replica presents.
    pub claims: [Claim; 2],
    /// What may go wrong.
    pub faults: Faults,
    /// What is done wrongly.
    pub defect: Option<Defect>,
}

/// Who takes the lock exclusively, and how far that is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Exclusive {
    Idle,
    Waiting,
    /// It has the lock, and has done nothing with it.
    Holding,
    /// The upsert has its row.
    Written,
    /// COMMIT is on its way.
    Committing,
    /// It was sent and not answered: the session is still there, for all that is known.
    Unanswered,
    Done,
}

impl Exclusive {
    const fn holds(self) -> bool {
        match self {
            Self::Holding | Self::Written | Self::Committing | Self::Unanswered => true,
            Self::Idle | Self::Waiting | Self::Done => false,
        }
    }

    /// The client has the next step, and may never take it.
    const fn stands_still(self) -> bool {
        match self {
            Self::Holding | Self::Written => true,
            Self::Idle | Self::Waiting | Self::Committing | Self::Unanswered | Self::Done => false,
        }
    }
}

/// Where a client stands in its transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum At {
    None,
    Begun,
    /// The lock is waited for; what the fence was before that.
    Locking(Claim),
    Locked(Claim),
    /// The fence said mine.
    Entered,
    /// The unit is claimed, its row locked.
    Claimed,
    /// It failed and was rolled back to its savepoint: the failure is to be charged.
    RolledBack,
    /// COMMIT is on its way.
    Committing,
    /// It was sent and not answered: the session is still there, for all that is known.
    Unanswered,
    Fenced,
}

/// What a transaction will have written once it commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Writes {
    /// Ends the unit.
    settles: bool,
    /// Binds the entry.
    binds: bool,
    /// Minor units that it posts.
    posts: u8,
    /// Charges an attempt.
    charges: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "what is independent of each other, in every combination")]
struct Replica {
    up: bool,
    advance: Exclusive,
    accepted: bool,
    at: At,
    /// The server's side of the session: what is written and not committed.
    writes: Writes,
    /// A transaction whose COMMIT was sent is the server's: it lands, or is ended.
    lands: bool,
    holds_shared: bool,
    holds_rows: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Wrong {
    S1,
    S2,
    S3,
    S6,
}

/// A state of the world.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    fence: Claim,
    halted: bool,
    halting: Exclusive,
    replicas: [Replica; 2],
    /// Whether each unit has ended.
    settled: [bool; 2],
    /// The entry's unit.
    bound: Option<u8>,
    /// All that was posted for it.
    posted: u8,
    /// Batches committed under the lower claim before the higher was accepted: worth to be seen.
    both_worked: [bool; 2],
    /// An advance was called again, and found that it had been accepted: the same.
    found_in_force: bool,
    left: Faults,
    wrong: Option<Wrong>,
}

/// A step of one replica (its place), of the server, or of the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    AskAdvance(usize),
    LockAdvance(usize),
    Upsert(usize),
    CommitAdvance(usize),
    LandAdvance(usize),
    NoAnswerToAdvance(usize),
    /// The old session is ended and seen gone; the advance is then called again.
    AdvanceAgain(usize),
    /// From a second connection: ends a session that holds the lock, or whose COMMIT is not answered.
    EndSession(usize),
    /// The same for one that holds the lock exclusively and does nothing.
    EndExclusive(usize),
    EndHalt,
    Begin(usize),
    AskLock(usize),
    Lock(usize),
    Read(usize),
    ClaimUnit(usize),
    Fail(usize),
    Charge(usize),
    Commit(usize),
    Land(usize),
    NoAnswer(usize),
    ReadAgain(usize),
    Crash(usize),
    AskHalt,
    LockHalt,
    Halt,
    Resume,
}

impl State {
    fn exclusive_held(&self) -> bool {
        self.halting.holds() || self.replicas.iter().any(|r| r.advance.holds())
    }

    fn shared_held(&self) -> bool {
        self.replicas.iter().any(|r| r.holds_shared)
    }

    fn free_for_exclusive(&self) -> bool {
        !self.exclusive_held() && !self.shared_held()
    }

    /// The transaction of a replica is over on the server.
    fn end(&mut self, at: usize) {
        let replica = &mut self.replicas[at];
        replica.writes = Writes::default();
        replica.lands = false;
        (replica.holds_shared, replica.holds_rows) = (false, false);
    }
}

impl Model for Fencing {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let replica = Replica {
            up: true,
            advance: Exclusive::Idle,
            accepted: false,
            at: At::None,
            writes: Writes::default(),
            lands: false,
            holds_shared: false,
            holds_rows: false,
        };
        vec![State {
            fence: Claim::default(),
            halted: false,
            halting: Exclusive::Idle,
            replicas: [replica; 2],
            settled: [false; 2],
            bound: None,
            posted: 0,
            both_worked: [false; 2],
            found_in_force: false,
            left: self.faults,
            wrong: None,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.wrong.is_some() {
            return;
        }
        for at in 0..2 {
            self.replica_actions(state, at, actions);
        }
        let waits = state.replicas.iter().any(|r| r.advance == Exclusive::Waiting);
        for (at, replica) in state.replicas.iter().enumerate() {
            let ends = waits && self.defect != Some(Defect::AdvanceEndsNoSession);
            if replica.holds_shared && ends {
                actions.push(Action::EndSession(at));
            }
            if replica.advance.stands_still() && ends && self.defect != Some(Defect::ExclusiveHolderNotEnded) {
                actions.push(Action::EndExclusive(at));
            }
        }
        let ends = waits
            && ![Some(Defect::AdvanceEndsNoSession), Some(Defect::ExclusiveHolderNotEnded)].contains(&self.defect);
        if state.halting.stands_still() && ends {
            actions.push(Action::EndHalt);
        }
        match state.halting {
            Exclusive::Idle if state.left.halts > 0 => actions.push(Action::AskHalt),
            Exclusive::Waiting if state.free_for_exclusive() => actions.push(Action::LockHalt),
            Exclusive::Holding => actions.push(Action::Halt),
            Exclusive::Done if state.halted && !state.exclusive_held() && !state.shared_held() => {
                actions.push(Action::Resume);
            }
            Exclusive::Idle
            | Exclusive::Waiting
            | Exclusive::Written
            | Exclusive::Committing
            | Exclusive::Unanswered
            | Exclusive::Done => {}
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::AskHalt => {
                state.left.halts -= 1;
                state.halting = Exclusive::Waiting;
            }
            Action::LockHalt => state.halting = Exclusive::Holding,
            Action::Halt => {
                state.halted = true;
                state.halting = Exclusive::Done;
            }
            // The operator is told that it failed.
            Action::EndHalt => state.halting = Exclusive::Idle,
            Action::Resume => state.halted = false,
            Action::AskAdvance(at)
            | Action::LockAdvance(at)
            | Action::Upsert(at)
            | Action::CommitAdvance(at)
            | Action::LandAdvance(at)
            | Action::NoAnswerToAdvance(at)
            | Action::AdvanceAgain(at)
            | Action::EndSession(at)
            | Action::EndExclusive(at)
            | Action::Begin(at)
            | Action::AskLock(at)
            | Action::Lock(at)
            | Action::Read(at)
            | Action::ClaimUnit(at)
            | Action::Fail(at)
            | Action::Charge(at)
            | Action::Commit(at)
            | Action::Land(at)
            | Action::NoAnswer(at)
            | Action::ReadAgain(at)
            | Action::Crash(at) => self.replica_step(&mut state, at, &action),
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(S1, |_, s: &State| s.wrong != Some(Wrong::S1)),
            Property::always(S2, |_, s: &State| s.wrong != Some(Wrong::S2)),
            Property::always(S3, |_, s: &State| s.wrong != Some(Wrong::S3) && (s.bound.is_none() || s.posted == 1)),
            Property::always(S6, |_, s: &State| s.wrong != Some(Wrong::S6)),
            Property::always(L1, |m: &Self, s: &State| {
                let waits = |r: &Replica| r.up && r.advance == Exclusive::Waiting;
                s.wrong.is_some() || !s.replicas.iter().any(waits) || !m.is_quiet(s)
            }),
            Property::always(L1_TOLD, |m: &Self, s: &State| {
                let refused = |(r, mine): (&Replica, &Claim)| {
                    r.up && r.advance == Exclusive::Done && !r.accepted && s.fence == *mine
                };
                !s.replicas.iter().zip(&m.claims).any(refused)
            }),
            Property::sometimes("both replicas settle, one after the other", |m: &Self, s: &State| {
                s.both_worked == [true; 2] || m.claims[0].term == m.claims[1].term
            }),
            Property::sometimes("an advance that was not answered is found in force", |_, s: &State| s.found_in_force),
        ]
    }
}

impl Fair for Fencing {
    fn is_fair(&self, action: &Action) -> bool {
        match action {
            // Clients may be paused for ever, also with the lock in hand; the server, and who waits to advance, are not.
            Action::LockAdvance(_)
            | Action::LandAdvance(_)
            | Action::EndSession(_)
            | Action::EndExclusive(_)
            | Action::EndHalt
            | Action::Land(_)
            | Action::LockHalt => true,
            Action::AskAdvance(_)
            | Action::Upsert(_)
            | Action::CommitAdvance(_)
            | Action::NoAnswerToAdvance(_)
            | Action::AdvanceAgain(_)
            | Action::Halt
            | Action::Begin(_)
            | Action::AskLock(_)
            | Action::Lock(_)
            | Action::Read(_)
            | Action::ClaimUnit(_)
            | Action::Fail(_)
            | Action::Charge(_)
            | Action::Commit(_)
            | Action::NoAnswer(_)
            | Action::ReadAgain(_)
            | Action::Crash(_)
            | Action::AskHalt
            | Action::Resume => false,
        }
    }
}

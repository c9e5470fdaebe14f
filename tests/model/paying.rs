//! Instructions: taken, committed as `sending`, given leave, sent, answered, recorded, by tenures that come and go.
//!
//! Each transaction is one step here, with the fence in it; that it may be is what [`fencing`](crate::fencing) shows. Elections
//! are any at all: a replica may win a term at any time, also while another leads, so no argument rests on leases or clocks.

mod possible;
mod steps;
mod verdicts;

pub use self::verdicts::receiver;

use bursar::domain::instruction::InstructionState;
use stateright::{Model, Property};

use crate::check::Fair;
use crate::defect::Defect;
use crate::receiver::{Answer, Receiver, Reply, Request};
use crate::store::{Fate, Row, Rules, Store};

/// A property.
pub const S4: &str = "S4 one key, one effect, and never again in doubt";
/// A property.
pub const S6: &str = "S6 nothing is taken or sent while halted";
/// A property.
pub const S7: &str = "S7 a tenure that is over, or in doubt, begins nothing";
/// A property.
pub const L2: &str = "L2 what a lower term left on the wire is taken up";
/// A property.
pub const L4: &str = "L4 every instruction ends or is for a person";

/// Replicas.
pub const REPLICAS: usize = 2;

/// What may go wrong, and how often in one history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Faults {
    /// A replica is killed.
    pub crashes: u8,
    /// A session is lost: the gate is closed.
    pub lapses: u8,
    /// A session is suspect for a while: the gate is held.
    pub holds: u8,
    /// Another wins a term while one leads.
    pub elections: u8,
    /// A request or an answer is lost.
    pub losses: u8,
    /// A request arrives twice.
    pub doubles: u8,
    /// The wait for an answer ends while it is still on its way.
    pub hurries: u8,
    /// The store does not say what became of a commit.
    pub unknowns: u8,
    /// The receiver refuses what it is asked for the first time.
    pub refusals: u8,
    /// The receiver says that it did nothing, and to come again.
    pub undone: u8,
    /// The receiver gives one of the [odd answers](Reply::ODD).
    pub odd: u8,
    /// There is no connection to the receiver.
    pub away: u8,
    /// An operator halts.
    pub halts: u8,
}

/// A bounded world.
#[derive(Debug, Clone, Copy)]
pub struct Paying {
    /// Instructions there are.
    pub instructions: usize,
    /// Tries of one that are charged.
    pub tries: u8,
    /// The receiver as it is.
    pub receiver: Receiver,
    /// What may go wrong.
    pub faults: Faults,
    /// What is done wrongly.
    pub defect: Option<Defect>,
}

/// What only an onlooker knows of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Seen {
    /// The key that was sent first.
    key: Option<u8>,
    /// Requests handed to the network that nothing has proved undone.
    maybe_done: u8,
    /// Payments made.
    paid: u8,
    /// The receiver has refused it.
    refused: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Stage {
    Won,
    Advanced,
    Working,
}

/// How far a call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Step {
    /// Committed as `sending`.
    Taken,
    /// Through the gate; the halt is to be read.
    Asked,
    /// The halt was read after that: the gate once more.
    Cleared,
    /// Given leave: the next is the first byte.
    Leaving,
    /// On the wire.
    Sent,
    /// It came to this, and is to be recorded.
    Came(Fate),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Call {
    instruction: u8,
    attempt: u8,
    key: u8,
    step: Step,
    /// Onlooker: halted since before leave was asked for.
    halted: bool,
    /// Onlooker: the tenure was over, or in doubt, when leave was last asked for.
    late: bool,
}

/// A tenure of a living process.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(clippy::struct_excessive_bools, reason = "what is independent of each other, in every combination")]
struct Tenure {
    term: u8,
    stage: Stage,
    /// The gate is closed: lost, or refused by the fence.
    over: bool,
    /// The gate is held.
    held: bool,
    /// A take was not answered: what it may have left is to be put back.
    unanswered: bool,
    /// Onlooker: the fence has refused it.
    refused: bool,
    calls: Vec<Call>,
}

/// What an onlooker has seen that must never be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Wrong {
    S4,
    S6,
    S7,
}

/// A state of the world.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    store: Store,
    seen: Vec<Seen>,
    /// Living tenures, in order: replicas are alike, so which is whose is no matter.
    tenures: Vec<Tenure>,
    wire: Vec<Request>,
    answers: Vec<Answer>,
    /// The highest token that the receiver has seen.
    highest: u8,
    left: Faults,
    wrong: Option<Wrong>,
    /// Worth to be seen.
    in_doubt_cleared: bool,
    told_old_token: bool,
}

/// A step. A tenure is named by its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    Win,
    WinBeside,
    Advance(usize),
    Recover(usize),
    Take(usize, u8),
    TakeUnknown(usize, u8, bool),
    PutBack(usize),
    /// Once a second a tenure asks whether anything is to be done.
    Sweep(usize),
    Ask(usize, usize),
    ReadHalt(usize, usize),
    Leave(usize, usize),
    Byte(usize, usize),
    NoConnection(usize, usize),
    Arrives(usize, Reply),
    Doubled(usize),
    Lost(usize),
    Answered(usize),
    AnswerLost(usize),
    GiveUp(usize, usize),
    Hurry(usize, usize),
    Record(usize, usize),
    RecordUnknown(usize, usize, bool),
    TearDown(usize),
    Crash(usize),
    Lapse(usize),
    Hold(usize),
    Unhold(usize),
    Halt,
    Resume,
}

impl State {
    /// The fence has refused a tenure: it is over, unless that is taken for something else.
    fn refuse(&mut self, at: usize, defect: Option<Defect>) {
        let tenure = &mut self.tenures[at];
        tenure.refused = true;
        if defect != Some(Defect::FencedAsNothingDue) {
            tenure.over = true;
        }
    }

    fn on_its_way(&self, call: &Call, term: u8) -> bool {
        let (instruction, attempt) = (call.instruction, call.attempt);
        self.wire.iter().any(|found| (found.instruction, found.attempt, found.term) == (instruction, attempt, term))
            || self
                .answers
                .iter()
                .any(|found| (found.instruction, found.attempt, found.term) == (instruction, attempt, term))
    }
}

impl Paying {
    const fn rules(self) -> Rules {
        Rules { idempotent: self.receiver.idempotent, defect: self.defect }
    }

    fn may_be_taken(state: &State, tenure: &Tenure, instruction: u8) -> bool {
        let in_hand = tenure.calls.iter().any(|call| call.instruction == instruction);
        !in_hand && state.store.may_be_taken(usize::from(instruction))
    }

    /// Puts a row on the wire under a term, and answers the call.
    fn take(self, state: &mut State, term: u8, instruction: u8) -> Call {
        if state.store.halted {
            state.wrong = Some(Wrong::S6);
        }
        let attempt = state.store.take(term, usize::from(instruction));
        let key = if self.defect == Some(Defect::KeyAnewOnRetry) { attempt } else { 1 };
        Call { instruction, attempt, key, step: Step::Taken, halted: state.store.halted, late: false }
    }
}

impl Model for Paying {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            store: Store::new(self.instructions),
            seen: vec![Seen::default(); self.instructions],
            tenures: Vec::new(),
            wire: Vec::new(),
            answers: Vec::new(),
            highest: 0,
            left: self.faults,
            wrong: None,
            in_doubt_cleared: false,
            told_old_token: false,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        // What is wrong once is wrong: nothing is learnt from what follows.
        if state.wrong.is_some() {
            return;
        }
        let living = state.tenures.iter().any(|tenure| !tenure.over);
        if state.tenures.len() < REPLICAS && !living {
            actions.push(Action::Win);
        } else if state.tenures.len() < REPLICAS && state.left.elections > 0 {
            actions.push(Action::WinBeside);
        }
        for at in 0..state.tenures.len() {
            self.tenure_actions(state, at, actions);
        }
        self.network_actions(state, actions);
        if state.store.halted {
            actions.push(Action::Resume);
        } else if state.left.halts > 0 {
            actions.push(Action::Halt);
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Win | Action::WinBeside => {
                state.left.elections -= u8::from(action == Action::WinBeside);
                let term = state.tenures.iter().map(|tenure| tenure.term).max().unwrap_or(0).max(state.store.fence) + 1;
                let stage = Stage::Won;
                let (over, held, unanswered, refused) = (false, false, false, false);
                state.tenures.push(Tenure { term, stage, over, held, unanswered, refused, calls: Vec::new() });
            }
            Action::Advance(at)
            | Action::Recover(at)
            | Action::PutBack(at)
            | Action::Sweep(at)
            | Action::Take(at, _)
            | Action::TakeUnknown(at, _, _) => self.transact(&mut state, at, &action),
            Action::Ask(at, place)
            | Action::ReadHalt(at, place)
            | Action::Leave(at, place)
            | Action::Byte(at, place)
            | Action::NoConnection(at, place)
            | Action::GiveUp(at, place)
            | Action::Hurry(at, place) => self.call_step(&mut state, at, place, &action),
            Action::Arrives(place, reply) => Self::arrives(&mut state, place, reply),
            Action::Answered(place) => self.answered(&mut state, place),
            Action::Record(at, place) => self.settle_call(&mut state, at, place, None),
            Action::RecordUnknown(at, place, committed) => {
                state.left.unknowns -= 1;
                self.settle_call(&mut state, at, place, Some(committed));
            }
            Action::TearDown(at) => {
                state.tenures.remove(at);
            }
            Action::Doubled(_)
            | Action::Lost(_)
            | Action::AnswerLost(_)
            | Action::Crash(_)
            | Action::Lapse(_)
            | Action::Hold(_)
            | Action::Unhold(_)
            | Action::Halt
            | Action::Resume => Self::fault(&mut state, &action),
        }
        for tenure in &mut state.tenures {
            tenure.calls.sort_unstable();
        }
        state.tenures.sort_unstable();
        state.wire.sort_unstable();
        state.answers.sort_unstable();
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(S4, |_, s: &State| {
                let untrue = |(row, seen): (&Row, &Seen)| {
                    row.state == InstructionState::Rejected && seen.paid > 0
                        || row.state == InstructionState::Paid && seen.paid == 0
                };
                s.wrong != Some(Wrong::S4) && !s.store.rows.iter().zip(&s.seen).any(untrue)
            }),
            Property::always(S6, |_, s: &State| s.wrong != Some(Wrong::S6)),
            Property::always(S7, |_, s: &State| s.wrong != Some(Wrong::S7)),
            Property::always(L2, |m: &Self, s: &State| {
                let left = |row: &Row| row.state == InstructionState::Sending && row.sending_term < s.store.fence;
                s.wrong.is_some() || !s.store.rows.iter().any(left) || !m.is_quiet(s)
            }),
            Property::always(L4, |m: &Self, s: &State| {
                let ended = |row: &Row| {
                    let waits = s.store.halted && row.state != InstructionState::Sending;
                    row.state.is_final() || row.state == InstructionState::Held || waits
                };
                s.wrong.is_some() || s.store.rows.iter().all(ended) || !m.is_quiet(s)
            }),
            Property::sometimes("an instruction in doubt is paid after all", |m: &Self, s: &State| {
                s.in_doubt_cleared || !m.receiver.idempotent || m.defect.is_some()
            }),
            Property::sometimes("a receiver refuses an old token", |m: &Self, s: &State| {
                s.told_old_token || !m.receiver.tokens || m.faults.crashes + m.faults.elections == 0
            }),
        ]
    }
}

impl Fair for Paying {
    fn is_fair(&self, action: &Action) -> bool {
        match action {
            Action::Win
            | Action::Advance(_)
            | Action::Recover(_)
            | Action::Take(..)
            | Action::PutBack(_)
            | Action::Sweep(_)
            | Action::Ask(..)
            | Action::ReadHalt(..)
            | Action::Leave(..)
            | Action::Byte(..)
            | Action::Arrives(..)
            | Action::Answered(_)
            | Action::GiveUp(..)
            | Action::Record(..)
            | Action::TearDown(_)
            | Action::Unhold(_) => true,
            // An operator may never resume.
            Action::Resume
            | Action::WinBeside
            | Action::NoConnection(..)
            | Action::Hurry(..)
            | Action::TakeUnknown(..)
            | Action::RecordUnknown(..)
            | Action::Doubled(_)
            | Action::Lost(_)
            | Action::AnswerLost(_)
            | Action::Crash(_)
            | Action::Lapse(_)
            | Action::Hold(_)
            | Action::Halt => false,
        }
    }
}

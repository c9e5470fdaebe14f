//! Ticks: timers that come late, twice or not at all, and leaders that change; each tick has one run.
//!
//! Time is the store's, in ticks. A leader reads the job's row and the time, and writes the runs of the ticks in between
//! together with the new `evaluated_until`, in one fenced transaction that compares what it read.

use stateright::{Model, Property};

use crate::check::Fair;
use crate::defect::Defect;

/// A property.
pub const S5: &str = "S5 one run per tick";
/// A property.
pub const L3: &str = "L3 every tick has its run";

/// What may go wrong, and how often in one history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Faults {
    /// A leader is killed.
    pub crashes: u8,
    /// Another is elected while one leads.
    pub elections: u8,
    /// The store does not say what became of a commit.
    pub unknowns: u8,
    /// The store's clock is stepped back by one.
    pub steps_back: u8,
}

/// A bounded world.
#[derive(Debug, Clone, Copy)]
pub struct Ticks {
    /// Ticks there are.
    pub ticks: u8,
    /// What may go wrong.
    pub faults: Faults,
    /// What is done wrongly.
    pub defect: Option<Defect>,
}

/// A leader: what it has read, and tries to write.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Leader {
    term: u8,
    /// The row's `evaluated_until`, and the time, as read; several timers may have fired.
    read: Vec<(u8, u8)>,
    /// Of the defect: the mark was moved, the runs are not in.
    owes: Vec<(u8, u8)>,
}

/// A state of the world.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    now: u8,
    /// The highest time that there was: a tick that was due once stays due.
    latest: u8,
    fence: u8,
    evaluated_until: u8,
    /// Runs per tick, from the first on.
    runs: Vec<u8>,
    leaders: Vec<Leader>,
    left: Faults,
}

/// A step. A leader is named by its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    Elect,
    ElectBeside,
    TimePasses,
    StepBack,
    /// A timer fires, or a sweep comes: the row and the time are read.
    Fire(usize),
    /// A timer fires that was fired before.
    FireTwice(usize),
    Record(usize, usize),
    RecordUnknown(usize, usize, bool),
    Insert(usize, usize),
    Crash(usize),
}

impl Ticks {
    /// The one transaction.
    fn record(self, state: &mut State, at: usize, (from, to): (u8, u8)) {
        let compares = self.defect != Some(Defect::TicksNotCompared);
        if state.fence != state.leaders[at].term || (compares && state.evaluated_until != from) || to > state.now {
            return;
        }
        state.evaluated_until = state.evaluated_until.max(to);
        if self.defect == Some(Defect::EvaluatedBeforeRun) {
            state.leaders[at].owes.push((from, to));
        } else {
            self.insert(state, from, to);
        }
    }

    fn insert(self, state: &mut State, from: u8, to: u8) {
        for tick in from..to {
            let runs = &mut state.runs[usize::from(tick)];
            if *runs == 0 || self.defect == Some(Defect::TicksNotCompared) {
                *runs += 1;
            }
        }
    }
}

impl Model for Ticks {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            now: 0,
            latest: 0,
            fence: 0,
            evaluated_until: 0,
            runs: vec![0; usize::from(self.ticks)],
            leaders: Vec::new(),
            left: self.faults,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.runs.iter().any(|runs| *runs > 1) {
            return;
        }
        match state.leaders.len() {
            0 => actions.push(Action::Elect),
            1 if state.left.elections > 0 => actions.push(Action::ElectBeside),
            _ => {}
        }
        if state.now < self.ticks {
            actions.push(Action::TimePasses);
        }
        if state.now > 0 && state.left.steps_back > 0 {
            actions.push(Action::StepBack);
        }
        for (at, leader) in state.leaders.iter().enumerate() {
            if state.evaluated_until < state.now && leader.read.len() < 2 && leader.owes.is_empty() {
                actions.push(if leader.read.is_empty() { Action::Fire(at) } else { Action::FireTwice(at) });
            }
            for read in 0..leader.read.len() {
                actions.push(Action::Record(at, read));
                if state.left.unknowns > 0 {
                    actions.push(Action::RecordUnknown(at, read, true));
                    actions.push(Action::RecordUnknown(at, read, false));
                }
            }
            for owed in 0..leader.owes.len() {
                actions.push(Action::Insert(at, owed));
            }
            if state.left.crashes > 0 {
                actions.push(Action::Crash(at));
            }
        }
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut state = last.clone();
        match action {
            Action::Elect | Action::ElectBeside => {
                state.left.elections -= u8::from(action == Action::ElectBeside);
                state.fence += 1;
                // Whoever led before is refused from here on, and told so: only what it has in hand is still tried.
                state.leaders.push(Leader { term: state.fence, read: Vec::new(), owes: Vec::new() });
            }
            Action::TimePasses => {
                state.now += 1;
                state.latest = state.latest.max(state.now);
            }
            Action::StepBack => {
                state.left.steps_back -= 1;
                state.now -= 1;
            }
            Action::Fire(at) | Action::FireTwice(at) => {
                let read = (state.evaluated_until, state.now);
                state.leaders[at].read.push(read);
            }
            Action::Record(at, read) => {
                let range = state.leaders[at].read.remove(read);
                self.record(&mut state, at, range);
            }
            // Not answered, it is called once more: what it compares says whether it happened.
            Action::RecordUnknown(at, read, committed) => {
                state.left.unknowns -= 1;
                if committed {
                    let range = state.leaders[at].read[read];
                    self.record(&mut state, at, range);
                }
            }
            Action::Insert(at, owed) => {
                let (from, to) = state.leaders[at].owes.remove(owed);
                if state.fence == state.leaders[at].term {
                    self.insert(&mut state, from, to);
                }
            }
            Action::Crash(at) => {
                state.left.crashes -= 1;
                state.leaders.remove(at);
            }
        }
        // One that was overtaken, and has nothing in hand any more, is gone.
        let fence = state.fence;
        state.leaders.retain(|leader| leader.term == fence || !leader.read.is_empty() || !leader.owes.is_empty());
        for leader in &mut state.leaders {
            leader.read.sort_unstable();
            leader.owes.sort_unstable();
        }
        state.leaders.sort_unstable();
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(S5, |_, s: &State| s.runs.iter().all(|runs| *runs <= 1)),
            Property::always("S5 no run before its time", |_, s: &State| {
                s.runs.iter().skip(usize::from(s.latest)).all(|runs| *runs == 0)
            }),
            Property::always(L3, |m: &Self, s: &State| {
                s.runs.iter().any(|runs| *runs > 1) || s.runs.iter().all(|runs| *runs == 1) || !m.is_quiet(s)
            }),
            Property::sometimes("a tick is caught up by the next leader", |m: &Self, s: &State| {
                m.faults.crashes == 0 || s.fence > 1 && s.runs.iter().all(|runs| *runs == 1)
            }),
        ]
    }
}

impl Fair for Ticks {
    fn is_fair(&self, action: &Action) -> bool {
        match action {
            Action::Elect | Action::TimePasses | Action::Fire(_) | Action::Record(..) | Action::Insert(..) => true,
            Action::ElectBeside
            | Action::StepBack
            | Action::FireTwice(_)
            | Action::RecordUnknown(..)
            | Action::Crash(_) => false,
        }
    }
}

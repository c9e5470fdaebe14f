//! Ticks: timers that come late, twice or not at all, leaders that change, an edit, a halt; each tick has one outcome, and that
//! which its job's policy says.
//!
//! Time is the store's, in ticks; a leader's own clock may be ahead of it. A leader reads the job's row and the time, decides
//! (with the product's own function), and writes the outcomes together with the new `evaluated_until`, in one fenced
//! transaction that compares what it read.

pub mod book;
pub mod decided;

use bursar::domain::job::Misfire;
use stateright::{Model, Property};

use self::book::{Book, Read, Rules, Said};
use self::decided::Fate;
use crate::check::Fair;
use crate::defect::Defect;

/// A property.
pub const S5: &str = "S5 one run per tick";
/// A property.
pub const S5_EARLY: &str = "S5 no run before its time";
/// A property.
pub const S6: &str = "S6 no run is opened while halted";
/// A property.
pub const L3: &str = "L3 every tick has its outcome";
/// A property.
pub const L3_POLICY: &str = "L3 the outcome is one of the policy in force, which takes what is late";

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
    /// A leader is elected whose clock is one ahead, until the store has told it the time.
    pub ahead: u8,
    /// An operator halts.
    pub halts: u8,
    /// The job gets another policy.
    pub edits: u8,
}

/// A bounded world.
#[derive(Debug, Clone, Copy)]
pub struct Ticks {
    /// Ticks there are.
    pub ticks: u8,
    /// The job's policy, and that of the edit.
    pub policies: [Misfire; 2],
    /// What may go wrong.
    pub faults: Faults,
    /// What is done wrongly.
    pub defect: Option<Defect>,
}

/// A leader: what it has read, and tries to write.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Leader {
    term: u8,
    /// Its clock is one ahead.
    ahead: bool,
    /// Several timers may have fired.
    read: Vec<Read>,
    /// Of the defect: the mark was moved, the runs are not in.
    owes: Vec<Read>,
}

/// A state of the world.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    book: Book,
    /// The edit is asked for.
    wanted: bool,
    leaders: Vec<Leader>,
    left: Faults,
    /// A leader was told that its time had not come: worth to be seen.
    not_yet: bool,
}

/// A step. A leader is named by its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    Elect,
    ElectBeside,
    ElectAhead,
    TimePasses,
    StepBack,
    Halt,
    Resume,
    Edit,
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
    const fn rules(self) -> Rules {
        Rules { policies: self.policies, defect: self.defect }
    }

    /// What a leader would read now, where there is something to be done.
    fn reads(self, state: &State, leader: &Leader) -> Option<Read> {
        let book = &state.book;
        let (edited, from) = (book.edited, book.evaluated_until);
        let to = (book.now + u8::from(leader.ahead)).min(self.ticks);
        let edits = state.wanted && !edited;
        (edits || from < to).then_some(Read { edited, from, to, edits })
    }

    fn record(self, state: &mut State, at: usize, read: Read) {
        let term = state.leaders[at].term;
        let said = state.book.record(term, read, self.rules());
        if said == Said::NotYet {
            state.leaders[at].ahead = false;
            state.not_yet = true;
        }
        if self.defect == Some(Defect::EvaluatedBeforeRun) && matches!(said, Said::Recorded(_) | Said::Changed) {
            state.leaders[at].owes.push(read);
        }
    }
}

impl Model for Ticks {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let (book, left) = (Book::new(self.ticks), self.faults);
        vec![State { book, wanted: false, leaders: Vec::new(), left, not_yet: false }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.book.is_wrong() {
            return;
        }
        match state.leaders.len() {
            0 => {
                actions.push(Action::Elect);
                if state.left.ahead > 0 {
                    actions.push(Action::ElectAhead);
                }
            }
            1 if state.left.elections > 0 => actions.push(Action::ElectBeside),
            _ => {}
        }
        let book = &state.book;
        let possible = [
            (book.now < self.ticks, Action::TimePasses),
            (book.now > 0 && state.left.steps_back > 0, Action::StepBack),
            (!book.halted && state.left.halts > 0, Action::Halt),
            (book.halted, Action::Resume),
            (state.left.edits > 0, Action::Edit),
        ];
        actions.extend(possible.into_iter().filter(|(possible, _)| *possible).map(|(_, action)| action));
        for (at, leader) in state.leaders.iter().enumerate() {
            // Halted, a leader waits for the resume.
            let looks = !book.halted && leader.read.len() < 2 && leader.owes.is_empty();
            if looks && self.reads(state, leader).is_some() {
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
            Action::Elect | Action::ElectBeside | Action::ElectAhead => {
                let ahead = action == Action::ElectAhead;
                state.left.elections -= u8::from(action == Action::ElectBeside);
                state.left.ahead -= u8::from(ahead);
                state.book.fence += 1;
                // Whoever led before is refused from here on, and told so: only what it has in hand is still tried.
                let term = state.book.fence;
                state.leaders.push(Leader { term, ahead, read: Vec::new(), owes: Vec::new() });
            }
            Action::TimePasses => state.book.now += 1,
            Action::StepBack => {
                state.left.steps_back -= 1;
                state.book.now -= 1;
            }
            Action::Halt => {
                state.left.halts -= 1;
                state.book.halted = true;
            }
            Action::Resume => state.book.halted = false,
            Action::Edit => {
                state.left.edits -= 1;
                state.wanted = true;
            }
            Action::Fire(at) | Action::FireTwice(at) => {
                let read = self.reads(&state, &state.leaders[at])?;
                state.leaders[at].read.push(read);
            }
            Action::Record(at, read) => {
                let read = state.leaders[at].read.remove(read);
                self.record(&mut state, at, read);
            }
            // Not answered, it is called once more: what it compares says whether it happened.
            Action::RecordUnknown(at, read, committed) => {
                state.left.unknowns -= 1;
                if committed {
                    let read = state.leaders[at].read[read];
                    self.record(&mut state, at, read);
                }
            }
            Action::Insert(at, owed) => {
                let owed = state.leaders[at].owes.remove(owed);
                if state.book.fence == state.leaders[at].term {
                    state.book.insert(owed, self.rules());
                }
            }
            Action::Crash(at) => {
                state.left.crashes -= 1;
                state.leaders.remove(at);
            }
        }
        // One that was overtaken, and has nothing in hand any more, is gone.
        let fence = state.book.fence;
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
            Property::always(S5, |_, s: &State| !s.book.twice),
            Property::always(S5_EARLY, |_, s: &State| !s.book.early),
            Property::always(S6, |_, s: &State| !s.book.opened_halted),
            Property::always(L3, |m: &Self, s: &State| {
                let all = s.book.rows.iter().all(Option::is_some);
                s.book.is_wrong() || s.book.halted || all || !m.is_quiet(s)
            }),
            Property::always(L3_POLICY, |m: &Self, s: &State| {
                let mut rows =
                    s.book.rows.iter().enumerate().filter_map(|(tick, row)| row.map(|(fate, new)| (tick, fate, new)));
                let opened_from =
                    |from: usize| s.book.rows.iter().skip(from).any(|row| matches!(row, Some((Fate::Opened, _))));
                !s.book.hasty
                    && rows.all(|(tick, fate, new)| match (m.policies[usize::from(new)], fate) {
                        (_, Fate::Opened) | (Misfire::Skip, Fate::Skipped) => true,
                        (Misfire::RunLatest, Fate::Coalesced) => opened_from(tick + 1),
                        (Misfire::RunAll | Misfire::RunLatest | Misfire::Skip, Fate::Skipped | Fate::Coalesced) => {
                            false
                        }
                    })
            }),
            Property::sometimes("a tick is caught up by the next leader", |m: &Self, s: &State| {
                m.faults.crashes == 0 || s.book.fence > 1 && s.book.rows.iter().all(Option::is_some)
            }),
            Property::sometimes("a leader is told that the time has not come", |m: &Self, s: &State| {
                m.faults.ahead == 0 || s.not_yet
            }),
            Property::sometimes("the policy takes ticks that nobody ran in time", |m: &Self, s: &State| {
                let by_policy = |row: &Option<(Fate, bool)>| row.is_some_and(|(fate, _)| fate != Fate::Opened);
                m.policies == [Misfire::RunAll; 2] || s.book.rows.iter().any(by_policy)
            }),
        ]
    }
}

impl Fair for Ticks {
    fn is_fair(&self, action: &Action) -> bool {
        match action {
            Action::Elect | Action::TimePasses | Action::Fire(_) | Action::Record(..) | Action::Insert(..) => true,
            Action::ElectBeside
            | Action::ElectAhead
            | Action::StepBack
            | Action::Halt
            // An operator may never resume.
            | Action::Resume
            | Action::Edit
            | Action::FireTwice(_)
            | Action::RecordUnknown(..)
            | Action::Crash(_) => false,
        }
    }
}

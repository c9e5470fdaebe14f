//! Explores a model with stateright, prints how large it was, and says what was found.
//!
//! Safety is `always`. For liveness stateright's `eventually` will not do: it says itself that it may miss a counterexample
//! where two paths join, and that it takes a cycle for no end. So here it is two claims that are both exact:
//!
//! - no cycle of fair steps ([`no_cycle`]): the graph of all reachable states with the fair steps alone is sorted
//!   topologically, so every run in which faults end comes to a state without a fair step;
//! - `always`: a state without a fair step has the goal ([`Fair::is_quiet`]).
//!
//! Together they are "eventually, where a fair step that stays possible is taken some time", from every reachable state.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::fmt::Debug;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write as _;

use stateright::{Checker, HasDiscoveries, Model};

/// A model whose steps are fair ones, which are taken some time, and faults, which may never come.
pub trait Fair: Model {
    /// Whether the step is bound to be taken some time.
    fn is_fair(&self, action: &Self::Action) -> bool;

    /// Whether no fair step is possible: whatever was to happen has happened.
    fn is_quiet(&self, state: &Self::State) -> bool {
        let mut actions = Vec::new();
        self.actions(state, &mut actions);
        !actions.iter().any(|action| self.is_fair(action))
    }
}

/// How large an exploration was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Explored {
    /// Distinct states.
    pub states: usize,
    /// Steps of the longest of the shortest ways.
    pub depth: usize,
}

/// Prints past the harness, which keeps to itself what a test prints: how large an explored world was is a figure to be read.
pub fn say(line: &str) {
    // What cannot be written is only not seen.
    writeln!(std::io::stdout(), "{line}").ok();
}

/// For whoever asks for the steps, with `--nocapture`.
#[expect(clippy::print_stdout, reason = "steps of a refutation are many lines")]
fn tell(lines: &str) {
    println!("{lines}");
}

/// Explores all of it: every property holds, and everything that is to be seen at least once was.
pub fn holds<M>(name: &str, model: M) -> Explored
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync + 'static,
    M::Action: Clone + Debug + PartialEq + Send + Sync,
{
    // `All` would end the search once everything to be seen was seen and everything else refuted: never here.
    let checker = model.checker().threads(2).finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    let found = checker.discoveries();
    let explored = Explored { states: checker.unique_state_count(), depth: checker.max_depth() };
    say(&format!("model {name}: {} states, depth {}", explored.states, explored.depth));
    for property in checker.model().properties() {
        match (property.expectation.discovery_is_failure(), found.get(property.name)) {
            (true, Some(path)) => {
                panic!("{name}: {} does not hold:\n{}", property.name, steps(path))
            }
            (false, None) => panic!("{name}: {} was never seen: the world is too small", property.name),
            (true, None) | (false, Some(_)) => {}
        }
    }
    explored
}

/// Explores until this property is refuted.
pub fn falls<M>(name: &str, model: M, property: &'static str)
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync + 'static,
    M::Action: Clone + Debug + PartialEq + Send + Sync,
{
    let wanted = HasDiscoveries::AnyOf(BTreeSet::from([property]));
    let checker = model.checker().threads(2).finish_when(wanted).spawn_bfs().join();
    let states = checker.unique_state_count();
    let Some(path) = checker.discovery(property) else {
        panic!("{name}: nothing refutes {property} in {states} states: the defect survives");
    };
    let length = path.clone().into_actions().len();
    say(&format!("defect {name}: refutes {property} after {length} steps, {states} states"));
    tell(&steps(&path));
}

fn steps<S, A: Clone + Debug>(path: &stateright::Path<S, A>) -> String
where
    S: Clone,
{
    let actions = path.clone().into_actions();
    actions.iter().enumerate().map(|(at, action)| format!("  {:>3} {action:?}", at + 1)).collect::<Vec<_>>().join("\n")
}

fn fingerprint(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// No run of fair steps goes on for ever: over all reachable states, the fair steps form no cycle.
pub fn no_cycle<M>(name: &str, model: &M)
where
    M: Fair,
    M::State: Clone + Debug + Hash,
    M::Action: Clone + Debug,
{
    let mut fair: HashMap<u64, Vec<u64>> = HashMap::new();
    let mut waiting: VecDeque<M::State> = model.init_states().into();
    let mut actions = Vec::new();
    while let Some(state) = waiting.pop_front() {
        let from = fingerprint(&state);
        if fair.contains_key(&from) {
            continue;
        }
        let mut to = Vec::new();
        model.actions(&state, &mut actions);
        for action in actions.drain(..) {
            let is_fair = model.is_fair(&action);
            let Some(next) = model.next_state(&state, action) else { continue };
            let next_print = fingerprint(&next);
            if is_fair {
                to.push(next_print);
            }
            if !fair.contains_key(&next_print) {
                waiting.push_back(next);
            }
        }
        fair.insert(from, to);
    }
    let mut left: HashMap<u64, usize> = fair.keys().map(|state| (*state, 0)).collect();
    for to in fair.values().flatten() {
        *left.entry(*to).or_default() += 1;
    }
    let mut ready: Vec<u64> = left.iter().filter(|(_, ways)| **ways == 0).map(|(state, _)| *state).collect();
    let mut sorted = 0;
    while let Some(state) = ready.pop() {
        sorted += 1;
        for to in fair.get(&state).into_iter().flatten() {
            let Some(ways) = left.get_mut(to) else { continue };
            *ways -= 1;
            if *ways == 0 {
                ready.push(*to);
            }
        }
    }
    let in_cycles = fair.len() - sorted;
    say(&format!("model {name}: no cycle of fair steps in {} states", fair.len()));
    assert_eq!(in_cycles, 0, "{name}: {in_cycles} states lie on cycles of fair steps, or behind one");
}

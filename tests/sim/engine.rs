//! Runs a scenario: each replica has a runtime of its own with a virtual clock of its own, and all are run in turn, a few
//! milliseconds at a time, on one thread.
//!
//! So a replica that is paused is one whose turn does not come: its clock is moved on at once when it does. One that crashes
//! is one whose runtime is dropped where it stands. Within a turn a replica's timers fire in order, without any waiting.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bursar::app::simulated::{Running, SimulatedReplica};
use bursar::chaos::network;
use bursar::clock::simulated;
use bursar::domain::{Moment, ReplicaId};
use bursar::leadership::ReplicaDescription;
use bursar::tenure::ScheduleInForce;
use tokio::runtime::Runtime;
use tokio::sync::{Notify, watch};

use crate::breaks::Break;
use crate::coordinator::{SimCoordinator, Way};
use crate::facts::Touch;
use crate::liveness;
use crate::nemesis::End;
use crate::receiver;
use crate::scenario::{QUERY, Scenario};
use crate::store::SimStore;
use crate::world::World;

/// The longest turn, milliseconds: what happens within one turn of one replica, nobody else sees in between.
const LONGEST_TURN: u64 = 25;
/// How long after the last trouble everything must be as it should.
pub const HEALED_WITHIN: Duration = Duration::from_mins(1);
/// When trouble is over.
const CALM: Duration = Duration::from_millis(crate::scenario::TROUBLE.end + 4_000);

thread_local! {
    /// The runtime's clock at its start, and what the replica's clock showed then.
    static CURRENT: Cell<Option<(tokio::time::Instant, Duration)>> = const { Cell::new(None) };
    /// What panicked on this thread.
    pub static PANICS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// The time of the replica whose turn it is.
#[expect(clippy::disallowed_methods, reason = "the virtual clock of a runtime that is paused")]
fn replica_time() -> Moment {
    match CURRENT.get() {
        Some((start, base)) => Moment::after_boot(base + tokio::time::Instant::now().duration_since(start)),
        // Between turns nobody asks but what is being dropped.
        None => Moment::after_boot(Duration::from_secs(1)),
    }
}

/// A process.
pub struct Process {
    incarnation: u32,
    pub name: String,
    runtime: Runtime,
    pub running: Running,
    start: tokio::time::Instant,
    /// The replica's clock at the start.
    base: Duration,
    /// Time that has passed on it since, microseconds.
    passed: u64,
    exit: Arc<Notify>,
    pub schedule: watch::Sender<Arc<ScheduleInForce>>,
    pub leaving: bool,
    /// Since when it is paused, and until when.
    pub paused: Option<(Duration, Duration)>,
}

/// A place for a process.
#[derive(Default)]
pub struct Place {
    incarnations: u32,
    pub process: Option<Process>,
    pub up_at: Duration,
    pub down_for: Duration,
}

/// What came of a run.
pub struct Outcome {
    pub violations: Vec<String>,
    pub log: String,
    pub events: u64,
    pub counts: BTreeMap<&'static str, u64>,
}

/// A run.
pub struct Engine {
    pub scenario: Scenario,
    pub world: Arc<World>,
    pub places: Vec<Place>,
    pub schedule: Arc<ScheduleInForce>,
    /// What ends at a moment: a halt, a hold, a time of bad commits.
    pub ends: Vec<(Duration, End)>,
    turns: fastrand::Rng,
}

/// Runs a scenario.
pub fn run(scenario: Scenario, broken: Break) -> Outcome {
    simulated::start(replica_time, scenario.seed);
    let outcome = Engine::new(scenario, broken).run();
    network::set(None);
    simulated::stop();
    outcome
}

impl Engine {
    fn new(scenario: Scenario, broken: Break) -> Self {
        let world = World::new(scenario.seed, scenario.replicas, broken);
        {
            let facts = &mut world.state().facts;
            facts.book.habits.clone_from(&scenario.receivers);
            let one_by_one = scenario.schedules.iter().flat_map(|schedule| &schedule.jobs);
            let one_by_one = one_by_one.filter(|job| job.batch.concurrency == 1).map(|job| job.name.clone());
            facts.one_by_one = one_by_one.collect();
            (facts.meddled, facts.sessions_are_safe) = (scenario.is_meddled_with(), scenario.sessions_are_safe());
        }
        world.judge.edit(|state| state.answer(QUERY, scenario.calls.clone()));
        let places = (0..scenario.replicas).map(|_| Place::default()).collect();
        let schedule = Arc::new(scenario.schedules[0].clone());
        let turns = fastrand::Rng::with_seed(scenario.seed.rotate_left(17));
        Self { world, places, schedule, ends: Vec::new(), turns, scenario }
    }

    fn run(mut self) -> Outcome {
        let acts = self.scenario.acts.clone();
        let mut acts = acts.into_iter().peekable();
        let mut audit_at = Duration::ZERO;
        let mut healed = false;
        loop {
            let now = self.world.now();
            while let Some((_, act)) = acts.next_if(|(at, _)| *at <= now) {
                self.act(act, now);
            }
            self.end_what_is_over(now);
            if now >= CALM && !healed {
                healed = true;
                self.heal(now);
            }
            self.world.deliver();
            self.turn(now);
            if now >= audit_at {
                audit_at = now + Duration::from_secs(1);
                self.world.audit(false);
                if healed && liveness::what_is_left(&self.world, &self.scenario, CALM).is_empty() {
                    break;
                }
            }
            let stuck = now > CALM + HEALED_WITHIN;
            if stuck {
                let left = liveness::what_is_left(&self.world, &self.scenario, CALM);
                self.world.state().violated(left);
            }
            let panics = PANICS.take().into_iter().map(|panic| format!("panicked: {panic}")).collect();
            let mut state = self.world.state();
            state.violated(panics);
            if stuck || !state.violations.is_empty() {
                break;
            }
        }
        for place in 0..self.places.len() {
            self.stop(place);
        }
        let ended = self.world.state().violations.is_empty();
        self.world.audit(ended);
        let log = self.world.take_log();
        let mut state = self.world.state();
        let violations = std::mem::take(&mut state.violations);
        Outcome { violations, log, events: state.facts.events, counts: std::mem::take(&mut state.counts) }
    }

    /// Everybody's turn, in an order that differs from time to time; then time has gone on.
    fn turn(&mut self, now: Duration) {
        let length = Duration::from_millis(self.turns.u64(2..=LONGEST_TURN));
        let first = self.turns.usize(0..self.places.len());
        for place in 0..self.places.len() {
            self.turn_of((place + first) % self.places.len(), now, length);
        }
        self.world.state().now = now + length;
        self.look_who_leads();
    }

    /// Those that stand still say nothing; the clocks of all others show the same moment.
    fn look_who_leads(&self) {
        let mut leading = BTreeMap::<_, BTreeSet<_>>::new();
        for process in self.places.iter().filter_map(|place| place.process.as_ref()).filter(|one| one.paused.is_none())
        {
            CURRENT.set(Some((process.start, process.base)));
            let entered = process.runtime.enter();
            for election in self.scenario.elections.iter().filter(|election| process.running.leads(election)) {
                leading.entry(election.clone()).or_default().insert(process.name.clone());
            }
            drop(entered);
            CURRENT.set(None);
        }
        let several = leading.values().any(|replicas| replicas.len() > 1);
        self.world.state().facts.leading = leading;
        if several {
            self.world.touch("judge", Touch::LeadersSeen);
        }
    }

    fn turn_of(&mut self, place: usize, now: Duration, length: Duration) {
        if self.places[place].process.is_none() {
            if now < self.places[place].up_at {
                return;
            }
            self.start(place);
        }
        let skew = self.scenario.skews[place];
        let Some(process) = self.places[place].process.as_mut() else { return };
        let own = |time: Duration| {
            let micros = i64::try_from(time.as_micros()).unwrap_or(0);
            u64::try_from(micros + micros * skew / 1_000_000).unwrap_or(0)
        };
        CURRENT.set(Some((process.start, process.base)));
        if let Some((since, until)) = process.paused {
            if now < until {
                CURRENT.set(None);
                return;
            }
            process.paused = None;
            self.world.state().paused[place] = false;
            let missed = own(now.saturating_sub(since));
            process.passed += missed;
            process.runtime.block_on(tokio::time::advance(Duration::from_micros(missed)));
        }
        process.passed += own(length);
        // Timers count in whole milliseconds.
        let until = process.start + Duration::from_millis(process.passed / 1_000);
        network::set(Some(receiver::network(&self.world, place, process.incarnation)));
        let (running, exit) = (&mut process.running, Arc::clone(&process.exit));
        let ended = process.runtime.block_on(async {
            tokio::select! {
                biased;
                () = exit.notified() => Some("the process"),
                part = running.first_ended() => Some(part),
                () = tokio::time::sleep_until(until) => None,
            }
        });
        let leaving = process.leaving;
        CURRENT.set(None);
        if let Some(part) = ended {
            self.world.log(&format!("place-{place}"), format!("{part} has ended"));
            if part != "the process" && !(leaving && part == "session") {
                self.world.state().violated(vec![format!("{part} ended by itself")]);
            }
            self.stop(place);
            let down_for = self.places[place].down_for.max(Duration::from_millis(100));
            self.places[place].up_at = now + down_for;
        }
    }

    #[expect(clippy::disallowed_methods, reason = "the virtual clock of a runtime that is paused")]
    fn start(&mut self, place: usize) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime without I/O asks the system for nothing");
        self.places[place].incarnations += 1;
        let incarnation = self.places[place].incarnations;
        let name = format!("replica-{place}-{incarnation}");
        self.world.state().alive[place] = Some(incarnation);
        self.world.log(&name, "starts");
        let way = Way { world: Arc::clone(&self.world), place, incarnation, name: name.clone() };
        let (schedule, in_force) = watch::channel(Arc::clone(&self.schedule));
        let exit = Arc::new(Notify::new());
        let (heard, exiting) = (way.clone(), Arc::clone(&exit));
        let told = way.clone();
        let replica = SimulatedReplica {
            replica: ReplicaDescription {
                id: ReplicaId::new(name.clone()).expect("valid"),
                host: format!("host-{place}"),
                address: String::new(),
                version: "simulated".to_owned(),
                schedule_fingerprint: self.schedule.fingerprint.clone(),
            },
            elections: self.scenario.elections.clone(),
            coordinator: Arc::new(SimCoordinator(way.clone())),
            store: Arc::new(SimStore::new(way)),
            schedule: in_force,
            lease_ttl: self.scenario.ttl,
            teardown_budget: self.scenario.teardown_budget,
            drain: Duration::from_secs(2),
            exit: Arc::new(move |reason| {
                told.world.count("processes that ended themselves");
                told.world.log(&told.name, format!("ends itself: {}", reason.as_str()));
                told.world.state().alive[told.place] = None;
                exiting.notify_one();
            }),
            ended: Arc::new(move |claim| heard.world.tenure_ended(&heard.name, claim)),
        };
        let base = Duration::from_secs(1_000 * (place as u64 + 1) + u64::from(incarnation));
        let (start, running) = runtime.block_on(async {
            let start = tokio::time::Instant::now();
            CURRENT.set(Some((start, base)));
            (start, replica.start())
        });
        CURRENT.set(None);
        self.places[place].process = Some(Process {
            incarnation,
            name,
            runtime,
            running,
            start,
            base,
            passed: 0,
            exit,
            schedule,
            leaving: false,
            paused: None,
        });
    }

    /// All of a process is gone.
    pub fn stop(&mut self, place: usize) {
        {
            let mut state = self.world.state();
            (state.alive[place], state.paused[place]) = (None, false);
        }
        if let Some(process) = self.places[place].process.take() {
            CURRENT.set(Some((process.start, process.base)));
            let Process { runtime, running, .. } = process;
            let entered = runtime.enter();
            drop(running);
            drop(entered);
            drop(runtime);
            CURRENT.set(None);
        }
    }
}

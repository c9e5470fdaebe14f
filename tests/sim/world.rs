//! The world that simulated replicas live in: one virtual time, one coordinator, one store, receivers, and the links to them.
//!
//! Invariant: everything that differs between two runs comes from the seed. Nothing here waits, reads a clock or draws from
//! anywhere else.

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bursar::domain::instruction::InstructionState;
use bursar::domain::{Claim, ElectionName, Moment};
use bursar::leadership::memory::MemoryModel;
use bursar::store::memory::{Fault, MemoryStore};
use chrono::{DateTime, TimeDelta, Utc};
use futures_util::FutureExt as _;
use tokio::sync::{Notify, oneshot};
use uuid::Uuid;

use crate::breaks::Break;
use crate::facts::{Facts, Touch};
use crate::invariants;
use crate::receiver::{Arrival, Reply};

/// The store's clock at the start.
const STORE_AT_START: i64 = 1_800_000_000;
/// The coordinator's clock at the start, after its boot.
const COORDINATOR_AT_START: Duration = Duration::from_secs(5_000);
/// What is counted where a message arrives whose sender is gone.
pub const OUTLIVED: &str = "landed after its sender's death";
/// Beyond so many bytes the log is not kept on: a run that writes more has lost its way.
const MOST_LOG: usize = 64 << 20;

/// One replica's link to one server.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::struct_field_names, reason = "each says until when")]
pub struct Link {
    /// Until when it is cut.
    pub cut_until: Duration,
    /// Until when it is slow.
    pub slow_until: Duration,
    /// Until when answers are lost, half of them.
    pub deaf_until: Duration,
}

/// One replica's links.
#[derive(Debug, Clone, Copy, Default)]
pub struct Links {
    pub coordinator: Link,
    pub store: Link,
    pub receiver: Link,
}

/// Which of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum To {
    Coordinator,
    Store,
    Receiver,
}

impl Links {
    pub fn to(&mut self, to: To) -> &mut Link {
        match to {
            To::Coordinator => &mut self.coordinator,
            To::Store => &mut self.store,
            To::Receiver => &mut self.receiver,
        }
    }
}

/// What becomes of one message and its answer.
#[derive(Debug, Clone, Copy)]
pub struct Way {
    /// The message takes so long; `None`: it is lost.
    pub there: Option<Duration>,
    /// The answer takes so long; `None`: it is lost.
    pub back: Option<Duration>,
    /// After so long the sender gives up.
    pub patience: Duration,
}

/// What a message does once it has arrived.
pub type Landing = Box<dyn FnOnce(&World) + Send>;

/// A message on its way: to the coordinator, to the store, to a receiver.
pub struct Delivery {
    /// The incarnation in a place that sent it.
    pub from: Option<(usize, u32)>,
    /// The tenure whose sessions it goes through.
    pub of: Option<Claim>,
    pub landing: Landing,
}

/// How many in a thousand go wrong.
#[derive(Debug, Clone, Copy, Default)]
pub struct BadCommits {
    /// COMMITs without an answer.
    pub unknown: u32,
    /// Transactions ended by the store.
    pub try_again: u32,
    /// Batches ended by the store.
    pub contended: u32,
}

/// What is behind the lock.
pub struct State {
    pub now: Duration,
    pub rng: fastrand::Rng,
    pub model: MemoryModel,
    /// An earlier content of the coordinator, for a restore.
    pub backup: Option<MemoryModel>,
    pub links: Vec<Links>,
    /// The incarnation that lives in each place; messages of any other reach nobody.
    pub alive: Vec<Option<u32>>,
    /// Whether the one that lives there stands still.
    pub paused: Vec<bool>,
    pub commits: BadCommits,
    pub store_offset: TimeDelta,
    pub facts: Facts,
    pub violations: Vec<String>,
    pub broken: Break,
    pub counts: BTreeMap<&'static str, u64>,
    deliveries: BTreeMap<(Duration, u64), Delivery>,
    sent: u64,
    log: String,
    audited_at: u64,
}

/// The world, shared by all that is in it.
pub struct World {
    state: Mutex<State>,
    /// The store as a judge sees it, who has no faults on the way.
    pub judge: MemoryStore,
    /// Something changed at the coordinator.
    pub changed: Notify,
}

impl World {
    pub fn new(seed: u64, replicas: usize, broken: Break) -> Arc<Self> {
        Arc::new_cyclic(|world: &std::sync::Weak<Self>| {
            let clock = world.clone();
            let clock = Arc::new(move || clock.upgrade().map_or(DateTime::UNIX_EPOCH, |world| world.store_time()));
            let deployment = Uuid::from_u128(7);
            let state = State {
                now: Duration::ZERO,
                rng: fastrand::Rng::with_seed(seed),
                model: MemoryModel::default(),
                backup: None,
                links: vec![Links::default(); replicas],
                alive: vec![None; replicas],
                paused: vec![false; replicas],
                commits: BadCommits::default(),
                store_offset: TimeDelta::zero(),
                facts: Facts::default(),
                violations: Vec::new(),
                broken,
                counts: BTreeMap::new(),
                deliveries: BTreeMap::new(),
                sent: 0,
                log: String::new(),
                audited_at: 0,
            };
            // In one seed of eight each operation is compared with what it says that it did, which takes most of the time.
            let judge = if seed.is_multiple_of(8) {
                MemoryStore::proving(clock, deployment)
            } else {
                MemoryStore::new(clock, deployment)
            };
            Self { state: Mutex::new(state), judge, changed: Notify::new() }
        })
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic holds it")
    }

    pub fn now(&self) -> Duration {
        self.state().now
    }

    /// The store's clock.
    pub fn store_time(&self) -> DateTime<Utc> {
        let state = self.state();
        let start = DateTime::from_timestamp(STORE_AT_START, 0).expect("in range");
        start + TimeDelta::from_std(state.now).expect("short") + state.store_offset
    }

    /// The coordinator's clock.
    pub fn coordinator_time(&self) -> Moment {
        Moment::after_boot(COORDINATOR_AT_START + self.now())
    }

    /// A line in the log.
    pub fn log(&self, who: &str, what: impl Display) {
        self.state().log(who, what);
    }

    pub fn take_log(&self) -> String {
        std::mem::take(&mut self.state().log)
    }

    pub fn count(&self, what: &'static str) {
        self.state().count(what);
    }

    /// Whether this incarnation is the one that lives there.
    pub fn lives(&self, place: usize, incarnation: u32) -> bool {
        self.state().alive[place] == Some(incarnation)
    }

    /// What becomes of a message.
    pub fn way(&self, place: usize, to: To) -> Way {
        let mut state = self.state();
        let now = state.now;
        let link = *state.links[place].to(to);
        let rng = &mut state.rng;
        let mut took = |slow: bool| {
            let most = match (slow, to) {
                (false, _) => 12,
                (true, To::Store) => 3_000,
                (true, To::Coordinator | To::Receiver) => 900,
            };
            Some(Duration::from_millis(rng.u64(1..=most)))
        };
        let slow = now < link.slow_until;
        let (mut there, mut back) = (took(slow), took(slow));
        let patience = Duration::from_millis(state.rng.u64(400..=1000));
        if now < link.cut_until {
            there = None;
        }
        if now < link.deaf_until && state.rng.bool() {
            back = None;
        }
        Way { there, back, patience }
    }

    /// What goes wrong with an operation at the store.
    pub fn fault(&self, operation: &'static str) -> Option<Fault> {
        let mut state = self.state();
        if state.broken == Break::Unfenced {
            return Some(Fault::Unfenced);
        }
        if operation == "settle" && state.commits.contended > 0 && state.rng.u32(0..1000) < state.commits.contended {
            return Some(Fault::TryAgain);
        }
        let drawn = state.rng.u32(0..1000);
        if drawn < state.commits.unknown {
            state.count("unknown commits");
            return Some(Fault::Unknown { committed: state.rng.bool() });
        }
        (drawn < state.commits.unknown + state.commits.try_again).then_some(Fault::TryAgain)
    }

    /// Something has happened: it is written down, and every invariant is asked.
    pub fn touch(&self, who: &str, touch: Touch) {
        let refresh = touch.may_have_written();
        let changed_job = matches!(&touch, Touch::Did { operation: "change_job", .. });
        let now = self.coordinator_time();
        {
            let mut state = self.state();
            match &touch {
                // Looked at in every turn: of no interest as long as all is well.
                Touch::LeadersSeen => {}
                Touch::Asked { claim, .. } => {
                    state.log(who, &touch);
                    let leader = state.model.read(now, &claim.election).leader;
                    state.facts.key_of = leader.and_then(|leader| leader.record).map(|record| record.tenure_id);
                }
                _ => state.log(who, &touch),
            }
            let now = state.now;
            state.facts.take_in(touch, now);
        }
        if refresh {
            self.look_at_store();
        }
        if changed_job {
            self.note_marks();
        }
        if self.state().broken == Break::FinalTakenBack {
            self.take_a_final_back();
        }
        let mut state = self.state();
        let found = invariants::check(&state.facts);
        state.violated(found);
    }

    /// The store's content as its views show it.
    fn look_at_store(&self) {
        // Answers at once, and has no faults on the way.
        let mut views = crate::facts::Views::read(&self.judge).now_or_never().expect("memory answers at once");
        let mut state = self.state();
        state.broken.distort(&mut views);
        state.facts.show(views);
    }

    /// Somebody says of a payout that was made that it came back, which nobody does in scenarios.
    fn take_a_final_back(&self) {
        use bursar::store::{Actor, Resolution, Store as _};
        let paid = |payout: &&bursar::store::PayoutView| payout.state == InstructionState::Paid;
        let Some(key) = self.state().facts.views.payouts.iter().find(paid).map(|payout| payout.key.clone()) else {
            return;
        };
        let actor = Actor { user: "operator".to_owned(), host: "desk".to_owned() };
        let returned = Resolution::Returned("R-2".to_owned());
        let resolved = self.judge.resolve_payout(&key, &returned, "broken", &actor);
        resolved.now_or_never().expect("memory answers at once").expect("the judge has no faults");
        self.look_at_store();
    }

    /// The marks of jobs, as they are brought up.
    pub fn note_marks(&self) {
        use bursar::store::Store as _;
        let status = self.judge.status().now_or_never().expect("memory answers at once");
        let mut state = self.state();
        for job in status.expect("the judge has no faults").jobs {
            state.facts.marks.entry(job.job).or_insert(job.evaluated_until);
        }
    }

    /// The store's own audit, where anything was done since the last one; in the end in any case. What is sent under a term
    /// that is in force no more is a violation in the end only: until then a promotion may be about to take it up.
    pub fn audit(&self, is_end: bool) {
        let writes = self.state().facts.writes;
        if std::mem::replace(&mut self.state().audited_at, writes) == writes && !is_end {
            return;
        }
        let report = self.judge.snapshot().audit(self.store_time());
        let counts = |name: &str| is_end || name != "sending_is_current";
        let broken = report.checks.iter().filter(|check| check.violations > 0 && counts(&check.name));
        let found = broken.map(|check| format!("the audit's {}: {:?}", check.name, check.examples)).collect();
        self.state().violated(found);
    }

    /// A message leaves, and arrives `after` so long, whatever becomes of its sender.
    pub fn send(&self, delivery: Delivery, after: Duration) {
        let mut state = self.state();
        state.sent += 1;
        let at = (state.now + after, state.sent);
        state.deliveries.insert(at, delivery);
    }

    /// A request leaves for a receiver.
    pub fn send_request(&self, arrival: Arrival, from: (usize, u32), after: Duration) -> oneshot::Receiver<Reply> {
        let (answer, answered) = oneshot::channel();
        let landing: Landing = Box::new(move |world| {
            let reply = world.state().receive(&arrival);
            world.touch("receiver", Touch::Arrived { arrival, reply: reply.clone() });
            // The one that asked may be gone.
            drop(answer.send(reply));
        });
        self.send(Delivery { from: Some(from), of: None, landing }, after);
        answered
    }

    /// The store ends a tenure's sessions: what of it is on the way does not arrive. Says how many those were.
    pub fn end_sessions(&self, claim: &Claim) -> u32 {
        let mut state = self.state();
        let before = state.deliveries.len();
        state.deliveries.retain(|_, delivery| delivery.of.as_ref() != Some(claim));
        u32::try_from(before - state.deliveries.len()).unwrap_or(u32::MAX)
    }

    /// Lets arrive what is due.
    pub fn deliver(&self) {
        loop {
            let landing = {
                let mut state = self.state();
                let now = state.now;
                let Delivery { from, landing, .. } = match state.deliveries.first_entry() {
                    Some(first) if first.key().0 <= now => first.remove(),
                    Some(_) | None => return,
                };
                if let Some((place, incarnation)) = from {
                    if state.alive[place] != Some(incarnation) {
                        state.count(OUTLIVED);
                    } else if state.paused[place] {
                        state.count("landed while its sender stood still");
                    }
                }
                landing
            };
            landing(self);
        }
    }

    /// A tenure says that nothing of it goes on.
    pub fn tenure_ended(&self, who: &str, claim: &Claim) {
        self.touch(who, Touch::TenureEnded { claim: claim.clone() });
    }

    /// The claim in force, as the store has it.
    pub fn in_force(&self, election: &ElectionName) -> Option<Claim> {
        use bursar::store::Store as _;
        let fence = self.judge.fence(election).now_or_never().expect("memory answers at once").ok().flatten()?;
        let (term, tenure_id) = (fence.holder.term, fence.holder.tenure_id);
        Some(Claim { election: election.clone(), term, tenure_id })
    }
}

impl World {
    /// The claim behind a token.
    pub fn claim_of(&self, election: &str, token: i64) -> Option<Claim> {
        let election = ElectionName::new(election).ok()?;
        let state = self.state();
        let claims = state.facts.accepted.get(&election)?;
        let (election, term, tenure_id) = claims.iter().find(|claim| claim.1.get() == token)?.clone();
        Some(Claim { election, term, tenure_id })
    }
}

impl State {
    pub fn log(&mut self, who: &str, what: impl Display) {
        if self.log.len() < MOST_LOG {
            let _ = writeln!(self.log, "{:>9.3} {who:<10} {what}", self.now.as_secs_f64());
        }
    }

    pub fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_insert(0) += 1;
    }

    pub fn violated(&mut self, found: Vec<String>) {
        for violation in found {
            if !self.violations.contains(&violation) {
                self.log("VIOLATION", &violation);
                self.violations.push(violation);
            }
        }
    }
}

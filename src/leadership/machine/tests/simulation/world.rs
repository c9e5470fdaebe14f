//! The world of the simulation: a clock, messages under way, a coordinator, fences, and the nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fastrand::Rng;
use uuid::Uuid;

use super::super::*;
use super::network::failure;
use crate::leadership::memory::MemoryModel;

pub(super) const NODES: usize = 3;
pub(super) const ELECTIONS: [&str; 2] = ["fees", "settlement"];
const STORM: Duration = Duration::from_secs(30);
/// The longest that anything needs to settle after the storm: a lease's rest, then standing back at its longest, then the
/// election itself.
const CALM: Duration = Duration::from_secs(75);
/// Leadership that only looks good for a moment is none: it is asked for this long after the storm.
const SETTLES: Duration = Duration::from_secs(6);
const ATTEMPT: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plan {
    Fair,
    Storm,
    StormAndWipes,
}

#[derive(Debug, Clone)]
pub(super) enum Delivery {
    Request(Command),
    Answer(Event),
    Wake,
    Beat,
    Advance(Claim),
    Restart,
}

pub(super) struct Node {
    pub(super) machine: Machine,
    pub(super) id: String,
    pub(super) life: u32,
    pub(super) up: bool,
    pub(super) clock_offset: Duration,
    pub(super) paused_until: Moment,
    pub(super) cut_until: Moment,
    pub(super) next_wake: Option<Moment>,
    pub(super) watches: BTreeMap<ElectionName, Revision>,
    /// Begun and not reported as ended.
    pub(super) tenures: BTreeMap<TenureId, Claim>,
    pub(super) deadlines: BTreeMap<LeaseId, Moment>,
    pub(super) was_paused_at: Moment,
}

pub(super) struct World {
    pub(super) seed: u64,
    pub(super) plan: Plan,
    pub(super) rng: Rng,
    pub(super) now: Moment,
    pub(super) calm_at: Moment,
    pub(super) queue: BTreeMap<(Moment, u64), (usize, u32, Delivery)>,
    pub(super) sequence: u64,
    pub(super) coordinator: MemoryModel,
    pub(super) fences: BTreeMap<ElectionName, Claim>,
    pub(super) accepted: BTreeMap<(ElectionName, Term), TenureId>,
    pub(super) begun: BTreeSet<TenureId>,
    pub(super) nodes: Vec<Node>,
    pub(super) drawn: u64,
    pub(super) names: Vec<ElectionName>,
}

pub(super) fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

impl World {
    pub(super) fn new(seed: u64, plan: Plan) -> Self {
        let start = ms(1_000_000);
        let mut world = Self {
            seed,
            plan,
            rng: Rng::with_seed(seed),
            now: start,
            calm_at: start + STORM,
            queue: BTreeMap::new(),
            sequence: 0,
            coordinator: MemoryModel::default(),
            fences: BTreeMap::new(),
            accepted: BTreeMap::new(),
            begun: BTreeSet::new(),
            nodes: Vec::new(),
            drawn: 0,
            names: ELECTIONS.iter().map(|name| election(name)).collect(),
        };
        for index in 0..NODES {
            let clock_offset = millis(world.rng.u64(0..1_000_000));
            let node = world.fresh_node(index, 0, clock_offset);
            world.nodes.push(node);
            world.arrive(index);
        }
        world
    }

    pub(super) fn begun(&self) -> u64 {
        self.begun.len() as u64
    }

    pub(super) fn fresh_node(&self, index: usize, life: u32, clock_offset: Duration) -> Node {
        let id = format!("n{index}-{life}");
        let settings = Settings {
            me: replica(&id),
            elections: ELECTIONS.iter().map(|name| election(name)).collect(),
            ttl: TTL,
            teardown_budget: millis(1000),
            drain: millis(2000),
        };
        Node {
            machine: Machine::new(settings, Now::both(self.now + clock_offset)),
            id,
            life,
            up: true,
            clock_offset,
            paused_until: self.now,
            cut_until: self.now,
            next_wake: None,
            watches: BTreeMap::new(),
            tenures: BTreeMap::new(),
            deadlines: BTreeMap::new(),
            was_paused_at: Moment::BOOT,
        }
    }

    /// A node has started: it is woken, beats, and may lead.
    pub(super) fn arrive(&mut self, index: usize) {
        self.schedule(index, Duration::ZERO, Delivery::Beat);
        for name in ELECTIONS {
            let report = Report::Eligible { election: election(name), eligible: Ok(()) };
            let delay = millis(self.rng.u64(0..200));
            self.schedule(index, delay, Delivery::Answer(Event::Reported(report)));
        }
        self.schedule_wake(index);
    }

    pub(super) fn schedule(&mut self, node: usize, after: Duration, delivery: Delivery) {
        self.sequence += 1;
        let life = self.nodes[node].life;
        self.queue.insert((self.now + after, self.sequence), (node, life, delivery));
    }

    pub(super) fn schedule_wake(&mut self, index: usize) {
        let node = &self.nodes[index];
        let Some((at, _)) = node.machine.deadline() else { return };
        let at = (at - node.clock_offset).max(self.now);
        if node.next_wake.is_none_or(|wake| at < wake) {
            self.nodes[index].next_wake = Some(at);
            self.schedule(index, at.since(self.now), Delivery::Wake);
        }
    }

    pub(super) fn stormy(&self) -> bool {
        self.plan != Plan::Fair && self.now < self.calm_at
    }

    pub(super) fn run(&mut self) {
        let end = self.calm_at + CALM;
        let mut next_tick = self.now;
        while self.now < end {
            let next = self.queue.keys().next().copied().expect("nodes beat for ever");
            if next.0 >= next_tick {
                self.now = next_tick;
                next_tick = next_tick + millis(50);
                self.tick();
                if self.now >= self.calm_at + SETTLES && self.all_led() {
                    return;
                }
            } else {
                self.now = next.0;
                let (node, life, delivery) = self.queue.remove(&next).expect("just seen");
                if self.nodes[node].life == life {
                    self.deliver(node, delivery);
                }
            }
        }
        let led: Vec<_> = self.names.iter().map(|name| self.leaders(name)).collect();
        panic!("seed {}: led by {led:?} after the storm", self.seed);
    }

    fn all_led(&self) -> bool {
        self.names.iter().all(|name| self.leaders(name).len() == 1)
    }

    fn deliver(&mut self, index: usize, delivery: Delivery) {
        let paused_until = self.nodes[index].paused_until;
        let from_outside = matches!(delivery, Delivery::Request(_) | Delivery::Advance(_) | Delivery::Restart);
        if paused_until > self.now && !from_outside {
            self.schedule(index, paused_until.since(self.now), delivery);
            return;
        }
        match delivery {
            Delivery::Request(command) => self.serve(index, command),
            Delivery::Answer(event) => self.hand(index, event),
            Delivery::Beat => {
                self.hand(index, Event::Reported(Report::Beat));
                self.schedule(index, millis(1000), Delivery::Beat);
            }
            Delivery::Wake => {
                if self.nodes[index].next_wake.is_some_and(|wake| wake <= self.now) {
                    self.nodes[index].next_wake = None;
                    self.hand(index, Event::Wake);
                }
            }
            Delivery::Advance(claim) => self.advance(index, claim),
            Delivery::Restart => {
                let (life, offset) = (self.nodes[index].life, self.nodes[index].clock_offset);
                self.nodes[index] = self.fresh_node(index, life, offset);
                self.arrive(index);
            }
        }
    }

    /// Hands an event to a machine and carries out what it commands.
    pub(super) fn hand(&mut self, index: usize, event: Event) {
        if !self.nodes[index].up {
            return;
        }
        if let Event::Reported(Report::Ended { claim }) = &event {
            self.nodes[index].tenures.remove(&claim.tenure_id);
        }
        self.drawn += 1;
        let luck = Luck {
            jitter: self.rng.u64(..),
            tenure: TenureId(Uuid::from_u128(u128::from(self.seed) << 64 | u128::from(self.drawn))),
        };
        let now = Now::both(self.now + self.nodes[index].clock_offset);
        for command in self.nodes[index].machine.handle(now, luck, event) {
            if !self.nodes[index].up {
                return;
            }
            self.carry_out(index, command);
        }
        self.schedule_wake(index);
        self.look();
    }

    fn carry_out(&mut self, index: usize, command: Command) {
        match command {
            Command::Begin { claim, .. } => {
                assert!(self.begun.insert(claim.tenure_id), "seed {}: {claim} begins twice", self.seed);
                let tenures = &mut self.nodes[index].tenures;
                assert!(
                    tenures.values().all(|other| other.election != claim.election),
                    "seed {}: {claim} begins before the one before it has ended",
                    self.seed
                );
                tenures.insert(claim.tenure_id, claim.clone());
                let delay = self.delay();
                self.schedule(index, delay, Delivery::Advance(claim));
            }
            Command::End { claim, .. } => {
                // In a storm some tenures hang; the process ends then.
                if !self.stormy() || self.rng.u32(0..40) > 0 {
                    let took = millis(self.rng.u64(0..900));
                    self.schedule(index, took, Delivery::Answer(Event::Reported(Report::Ended { claim })));
                }
            }
            Command::ReadFence { election } => {
                let term = self.fences.get(&election).map_or(Term::NONE, |claim| claim.term);
                let delay = self.delay();
                let report = Report::FenceTerm { election, term: Ok(term) };
                self.schedule(index, delay, Delivery::Answer(Event::Reported(report)));
            }
            Command::Watch { election, from } => {
                self.nodes[index].watches.insert(election, from);
            }
            Command::Open { lease, deadline, .. } => {
                self.nodes[index].deadlines.insert(lease, deadline);
            }
            Command::Close { lease } => {
                self.nodes[index].deadlines.remove(&lease);
            }
            Command::Exit(_) => self.crash(index),
            Command::Accept { .. } | Command::Forget { .. } | Command::Hold { .. } | Command::Note(_) => {}
            Command::Finished => panic!("seed {}: nobody drains here", self.seed),
            Command::Grant { .. }
            | Command::Renew { .. }
            | Command::Revoke { .. }
            | Command::Read { .. }
            | Command::Campaign { .. }
            | Command::Resign { .. }
            | Command::Transfer { .. }
            | Command::Register { .. }
            | Command::Survey { .. } => self.send(index, command),
        }
    }

    fn send(&mut self, index: usize, command: Command) {
        self.schedule(index, ATTEMPT, Delivery::Answer(failure(&command)));
        if !self.lost(index) {
            let delay = self.delay();
            self.schedule(index, delay, Delivery::Request(command));
        }
    }

    /// The store's fence: one winner per term, and the tenure id decides.
    fn advance(&mut self, index: usize, claim: Claim) {
        let found = self.fences.get(&claim.election).cloned();
        let accepts = found.as_ref().is_none_or(|fence| fence.term < claim.term || *fence == claim);
        if !accepts {
            let report = Report::Fenced { claim, found };
            self.schedule(index, Duration::ZERO, Delivery::Answer(Event::Reported(report)));
            return;
        }
        self.fences.insert(claim.election.clone(), claim.clone());
        let before = self.accepted.insert((claim.election.clone(), claim.term), claim.tenure_id);
        assert!(before.is_none_or(|id| id == claim.tenure_id), "seed {}: {claim} accepted twice", self.seed);
        if self.plan != Plan::StormAndWipes {
            self.nobody_else_works(index, &claim);
        }
        for report in [Report::Accepted { claim: claim.clone() }, Report::FirstWork { claim }] {
            let delay = self.delay();
            self.schedule(index, delay, Delivery::Answer(Event::Reported(report)));
        }
    }

    /// When a term is accepted, nothing of an earlier tenure goes on in a process that ran all the time.
    fn nobody_else_works(&self, index: usize, claim: &Claim) {
        for (other, node) in self.nodes.iter().enumerate().filter(|(other, node)| *other != index && node.up) {
            let ran = self.now.since(node.paused_until.max(node.was_paused_at)) > TTL && node.paused_until <= self.now;
            let works = node.tenures.values().find(|tenure| tenure.election == claim.election);
            assert!(
                !ran || works.is_none_or(|tenure| tenure.term > claim.term),
                "seed {}: node {other} still works on {works:?} when {claim} is accepted",
                self.seed
            );
        }
    }

    fn leaders(&self, election: &ElectionName) -> Vec<(usize, Claim)> {
        let claims = self.nodes.iter().enumerate().filter(|(_, node)| node.up).flat_map(|(index, node)| {
            node.machine.leads(self.now + node.clock_offset).into_iter().map(move |claim| (index, claim))
        });
        claims.filter(|(_, claim)| claim.election == *election).collect()
    }

    /// The invariants that hold at every moment.
    fn look(&self) {
        for name in &self.names {
            let leaders = self.leaders(name);
            assert!(
                leaders.len() <= 1 || self.plan == Plan::StormAndWipes,
                "seed {}: two lead at {}: {leaders:?}",
                self.seed,
                self.now
            );
            for (index, claim) in leaders {
                let node = &self.nodes[index];
                let now = self.now + node.clock_offset;
                assert!(
                    node.deadlines.values().any(|deadline| now < *deadline),
                    "seed {}: {claim} leads past its deadline",
                    self.seed
                );
                assert!(node.tenures.contains_key(&claim.tenure_id), "seed {}: {claim} leads and has ended", self.seed);
                assert!(self.accepted.get(&(claim.election.clone(), claim.term)) == Some(&claim.tenure_id));
            }
        }
    }
}

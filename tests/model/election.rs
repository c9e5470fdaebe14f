//! Two replicas with the product's own machine, one coordinator, one fence: sessions, elections, tenures.
//!
//! Time is true time, and passes only when nothing is left to be done at this moment: from one moment at which somebody
//! wants to be woken, or a lease lapses, to the next. So a message arrives at once, and a replica that is due is woken at
//! once, unless a fault of the bounded number says otherwise: a message is lost, on its way or on its way back; it is late,
//! for as long as the world lasts; it arrives twice; a replica is paused. What is under way at one moment is delivered in
//! any order between replicas.

mod faults;
mod steps;
mod world;

use std::time::Duration;

use bursar::domain::{Claim, ElectionName, Moment};
use bursar::leadership::machine::{Command, Event, Report, TTLS_WITHOUT_BEAT};
use stateright::{Model, Property};

pub use self::faults::Faults;
use crate::coordinator::Coordinator;
use crate::defect::Defect;
use crate::replica::{BUDGET, Rate, Replica, TTL};

/// A property.
pub const S1_TERM: &str = "S1 one tenure per term";
/// A property.
pub const S1_ONE: &str = "S1 at most one leads, while nobody meddles with the coordinator";
/// A property.
pub const S2: &str = "S2 whoever leads was accepted by the store";
/// A property.
pub const S7_SESSION: &str = "S7 no tenure outlives its session in a process that runs";
/// A property.
pub const S7_ONE: &str = "S7 a tenure begins when the one before it has ended";
/// A property.
pub const L1: &str = "L1 somebody leads within the TTL and a small bound";
/// A property.
pub const L1_PLANNED: &str = "L1 after a planned end another leads at once";
/// Has to be seen where L1 is claimed: the world lasts for longer than the bound, so a vacancy can be too long in it.
pub const L1_REACHED: &str = "calm is looked at beyond L1's bound";

/// How long an operation at the coordinator may take before its sender is told that it failed.
const OPERATION_LIMIT: Duration = Duration::from_secs(2);

/// Within the TTL and this, from the last disturbance on, somebody leads: finding out by reading again (a fifth of the TTL),
/// and twice the wait after an operation that failed.
const SMALL_BOUND: Duration = Duration::from_secs(3);

/// Within this after a planned end, where nobody is killed, paused or meddled with: reading again, and the wait after an
/// operation that failed.
const PLANNED_BOUND: Duration = Duration::from_millis(1100);

/// By so many seconds a stall makes the coordinator late.
const STALLS: [u8; 2] = [1, 3];

/// An operator lifts the term by so much.
const LIFT: i64 = 5;

/// The one election.
pub fn name() -> ElectionName {
    ElectionName::new("settlement").expect("a valid name")
}

/// A bounded world.
#[derive(Debug, Clone, Copy)]
pub struct Election {
    /// How fast the replicas' clocks run.
    pub rates: [Rate; 2],
    /// What may go wrong.
    pub faults: Faults,
    /// Until this long after the beginning.
    pub faults_until: Duration,
    /// Time ends then.
    pub horizon: Duration,
    /// Whether the world begins with a leader at work, rather than with two replicas that start.
    pub led: bool,
    /// Whether watches wake anybody.
    pub watches: bool,
    /// What is done wrongly.
    pub defect: Option<Defect>,
}

/// Under way between a process and the world.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Message {
    /// To the coordinator, or for the fence's term to the store.
    Request(Command),
    /// To the machine.
    Tell(Event),
    /// The promotion: to the store.
    Advance(Claim),
    /// The tenure's next transaction is refused.
    Refused(Claim),
}

/// A message that is late.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Late {
    node: usize,
    start: u8,
    message: Message,
    since: Moment,
    /// The sender was told that it failed, or is gone.
    given_up: bool,
}

/// A state of the world.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct World {
    now: Moment,
    replicas: [Replica; 2],
    /// Per replica, in the order of sending.
    prompt: [Vec<Message>; 2],
    late: Vec<Late>,
    coordinator: Coordinator,
    /// The fence: the claim that was accepted last.
    fence: Option<Claim>,
    /// Onlooker: two tenures were accepted for one term.
    accepted_twice: bool,
    /// Campaigns sent, which makes tenures different.
    campaigns: u8,
    /// Terms accepted.
    accepted: u8,
    left: Faults,
    /// When anything last went wrong, or stopped to.
    disturbed_at: Moment,
    /// Since when nobody leads.
    vacant_since: Option<Moment>,
    /// Nobody leads since a tenure was ended as planned, and nothing but messages went wrong since.
    planned: bool,
}

/// A step. A replica is named by its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// The first message of a replica arrives, and where it is a request, its answer too.
    Deliver(usize),
    LoseRequest(usize),
    LoseAnswer(usize),
    DelayRequest(usize),
    DelayAnswer(usize),
    Double(usize),
    /// A late message arrives.
    Arrive(usize),
    /// The sender of a late one is told that it failed.
    GiveUp(usize),
    Wake(usize),
    TimePasses,
    Pause(usize),
    Resume(usize),
    Crash(usize),
    Restart(usize),
    /// Its workers stand still from now on.
    Stick(usize),
    Drain(usize),
    HandOver(usize),
    Lift,
    Stall(u8),
    Wipe,
    Backup,
    Restore,
    DeleteLeader,
    PutLeaselessLeader,
}

impl Election {
    /// The longest that calm may last without a leader.
    fn bound(&self, behind: Duration) -> Duration {
        // Workers that stand still are noticed after three TTLs, and the process ends.
        let stuck = TTL * TTLS_WITHOUT_BEAT * u32::from(self.faults.stuck);
        TTL + behind + SMALL_BOUND + stuck
    }

    /// Whether the world lasts for long enough after its faults that L1 could be seen to fail.
    pub fn shows_l1(&self) -> bool {
        let latest = Duration::from_secs(u64::from(self.faults.stalls) * u64::from(STALLS[1]));
        self.horizon > self.faults_until + self.bound(latest)
    }

    /// The same for a planned end.
    pub fn shows_planned(&self) -> bool {
        let ends = self.faults.drains + self.faults.handovers > 0;
        ends && self.horizon > self.faults_until + OPERATION_LIMIT + PLANNED_BOUND
    }

    /// The world's end: then nothing more is looked at.
    fn end(&self) -> Moment {
        begin() + self.horizon
    }

    fn first(&self) -> World {
        let mut world = World {
            now: begin(),
            replicas: [Replica::down(), Replica::down()],
            prompt: [Vec::new(), Vec::new()],
            late: Vec::new(),
            coordinator: Coordinator::new(),
            fence: None,
            accepted_twice: false,
            campaigns: 0,
            accepted: 0,
            left: self.faults,
            disturbed_at: begin(),
            vacant_since: Some(begin()),
            planned: false,
        };
        for node in 0..2 {
            self.start(&mut world, node);
        }
        while self.led && world.leaders(self).is_empty() {
            let node = usize::from(world.prompt[0].is_empty() && !world.is_due(self, 0));
            let action = if world.prompt[node].is_empty() { Action::Wake(node) } else { Action::Deliver(node) };
            let action = if world.is_still(self) { Action::TimePasses } else { action };
            world = self.next_state(&world, action).expect("the beginning is without faults");
        }
        world.disturbed_at = world.now;
        world
    }

    fn start(&self, world: &mut World, node: usize) {
        let shown = world.shows(self, node);
        world.replicas[node].start(node, shown);
        world.hand(self, node, Event::Reported(Report::Eligible { election: name(), eligible: Ok(()) }));
    }
}

fn begin() -> Moment {
    Moment::after_boot(Duration::from_secs(100))
}

impl Model for Election {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![self.first()]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        // A step that touches nobody but its own replica comes first: before or after the other's, it is the same.
        let alone = (0..2).find(|node| world.is_local(self, *node));
        for node in 0..2 {
            if world.replicas[node].paused {
                if self.faults.pauses > 0 || world.is_still(self) {
                    actions.push(Action::Resume(node));
                }
            } else if alone.is_none_or(|alone| alone == node) {
                if !world.prompt[node].is_empty() {
                    actions.push(Action::Deliver(node));
                } else if world.is_due(self, node) {
                    actions.push(Action::Wake(node));
                }
            }
            if world.replicas[node].machine.is_none() && world.is_still(self) {
                actions.push(Action::Restart(node));
            }
        }
        for (place, late) in world.late.iter().enumerate() {
            // A renewal's touches one lease and one machine: within a moment its place makes no difference.
            if !late.is_renewal() || late.since + OPERATION_LIMIT <= world.now || world.is_still(self) {
                actions.push(Action::Arrive(place));
            }
            if !late.given_up && late.is_waited_for() {
                actions.push(Action::GiveUp(place));
            }
        }
        if world.now <= begin() + self.faults_until {
            self.fault_actions(world, actions);
        }
        if world.is_still(self) && world.next_moment(self).is_some_and(|at| at <= self.end()) {
            actions.push(Action::TimePasses);
        }
    }

    fn next_state(&self, last: &World, action: Action) -> Option<World> {
        let mut world = last.clone();
        let mut disturbs = true;
        match action {
            Action::Deliver(node) => {
                disturbs = false;
                self.message_step(&mut world, node, &action);
            }
            Action::LoseRequest(node)
            | Action::LoseAnswer(node)
            | Action::DelayRequest(node)
            | Action::DelayAnswer(node)
            | Action::Double(node) => self.message_step(&mut world, node, &action),
            Action::Arrive(place) => self.late_step(&mut world, place, true),
            Action::GiveUp(place) => self.late_step(&mut world, place, false),
            Action::Wake(node) => {
                disturbs = false;
                world.hand(self, node, Event::Wake);
            }
            Action::TimePasses => {
                disturbs = false;
                world.now = world.next_moment(self)?;
            }
            Action::Pause(node) => {
                if world.left.pauses > 0 {
                    world.left.pauses -= 1;
                } else {
                    world.left.stops -= 1;
                }
                world.replicas[node].paused = true;
            }
            Action::Resume(node) => world.replicas[node].paused = false,
            Action::Crash(node) => {
                world.left.crashes -= 1;
                world.replicas[node].end();
                world.gone(node);
            }
            Action::Restart(node) => {
                disturbs = false;
                self.start(&mut world, node);
            }
            Action::Stick(node) => {
                world.left.stuck -= 1;
                world.replicas[node].stuck = true;
            }
            Action::Drain(node) => {
                world.left.drains -= 1;
                world.end_as_planned(self, node, Report::Drain);
            }
            Action::HandOver(node) => {
                world.left.handovers -= 1;
                let term = self.leads(&world, node)?.term;
                world.end_as_planned(self, node, Report::HandOver { election: name(), term, to: None });
            }
            Action::Backup => {
                disturbs = false;
                world.coordinator.save();
            }
            Action::Lift
            | Action::Stall(_)
            | Action::Wipe
            | Action::Restore
            | Action::DeleteLeader
            | Action::PutLeaselessLeader => Self::meddle(&mut world, &action),
        }
        if disturbs {
            world.disturbed_at = world.now;
        }
        if self.watches {
            world.wake_watchers();
        }
        let served = world.is_served(self);
        world.vacant_since = if served { None } else { world.vacant_since.or(Some(world.now)) };
        world.planned &= !served && !steps::is_of_a_process_or_the_coordinator(&action);
        Some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut all = vec![
            Property::always(S1_TERM, |_, w: &World| !w.accepted_twice && !w.coordinator.issued_twice),
            Property::always(S1_ONE, |m: &Self, w: &World| w.coordinator.meddled || w.leaders(m).len() <= 1),
            Property::always(S2, |m: &Self, w: &World| {
                w.leaders(m).iter().all(|claim| w.fence.as_ref().is_some_and(|fence| fence.term >= claim.term))
            }),
            Property::always(S7_SESSION, |m: &Self, w: &World| {
                !w.outlives_its_session(m) && w.replicas.iter().all(|replica| !replica.revived)
            }),
            Property::always(S7_ONE, |_, w: &World| w.replicas.iter().all(|replica| !replica.began_beside)),
            Property::sometimes("another term is accepted", |m: &Self, w: &World| {
                // Messages alone move nobody from the lead.
                let moves = Faults { losses: 0, delays: 0, late_renewals: 0, doubles: 0, ..m.faults }
                    != Faults::default()
                    || !m.led;
                w.accepted > u8::from(m.led) || !moves
            }),
            Property::sometimes("a successor leads by the record that was put for it", |m: &Self, w: &World| {
                m.faults.handovers == 0 || w.coordinator.handed_over && w.is_served(m)
            }),
        ];
        if self.shows_planned() {
            all.push(Property::always(L1_PLANNED, |m: &Self, w: &World| {
                !w.planned || w.is_ending() || !w.nobody_leads_for(m, PLANNED_BOUND)
            }));
        }
        if self.shows_l1() {
            all.extend([
                Property::always(L1, |m: &Self, w: &World| !w.nobody_leads_for(m, m.bound(w.coordinator.behind))),
                Property::sometimes(L1_REACHED, |m: &Self, w: &World| {
                    w.now.since(w.disturbed_at) > m.bound(w.coordinator.behind) && w.left != m.faults
                }),
            ]);
        }
        all
    }
}

/// The teardown's budget is within the time that clocks of this speed may err by in a TTL.
pub fn tolerates(rate: Rate) -> bool {
    let slow = TTL.saturating_sub(BUDGET) * 100 / rate.0;
    slow <= TTL
}

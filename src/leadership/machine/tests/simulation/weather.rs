//! What goes wrong in the world, and how often.

use std::time::Duration;

use super::super::*;
use super::world::{Delivery, ELECTIONS, NODES, Plan, World, millis};

impl World {
    /// Lets leases lapse, wakes watches, and makes weather.
    pub(super) fn tick(&mut self) {
        self.coordinator.lapse(self.now);
        if self.stormy() {
            self.weather();
        }
        for index in 0..NODES {
            self.wake_watches(index);
        }
    }

    pub(super) fn weather(&mut self) {
        let index = self.rng.usize(0..NODES);
        match self.rng.u32(0..600) {
            0..4 => self.nodes[index].cut_until = self.now + millis(self.rng.u64(0..12_000)),
            4..8 => {
                // Never shortens a pause: what was put off waits for its old end.
                let until = self.now + millis(self.rng.u64(0..15_000));
                self.nodes[index].paused_until = self.nodes[index].paused_until.max(until);
                self.nodes[index].was_paused_at = self.now;
            }
            8..10 => self.crash(index),
            10..14 if self.nodes[index].up => {
                let claim = self.nodes[index].tenures.values().next().cloned();
                if let Some(claim) = claim {
                    let report = match self.rng.u32(0..3) {
                        0 => Report::Fault { claim, why: String::new() },
                        1 => Report::PromotionFailed { claim, why: String::new() },
                        _ => Report::Ended { claim },
                    };
                    self.hand(index, Event::Reported(report));
                }
            }
            14..18 if self.nodes[index].up => {
                let name = election(ELECTIONS[self.rng.usize(0..ELECTIONS.len())]);
                let away = Report::Eligible { election: name.clone(), eligible: Err("away".into()) };
                self.hand(index, Event::Reported(away));
                let back = Report::Eligible { election: name, eligible: Ok(()) };
                let delay = millis(self.rng.u64(0..3000));
                self.schedule(index, delay, Delivery::Answer(Event::Reported(back)));
            }
            // Whoever leads is asked to hand over, also where it has just ended or another leads.
            25..32 if self.nodes[index].up => {
                let claim = self.nodes[index].tenures.values().next().cloned();
                if let Some(Claim { election, term, .. }) = claim {
                    let named = self.rng.bool().then(|| replica(&self.nodes[self.rng.usize(0..NODES)].id));
                    self.hand(index, Event::Reported(Report::HandOver { election, term, to: named }));
                }
            }
            18..20 if self.plan == Plan::StormAndWipes => self.coordinator.wipe(),
            20..23 if self.plan == Plan::StormAndWipes => {
                self.coordinator.delete_leader_by_hand(&election(ELECTIONS[0]));
            }
            23..25 if self.plan == Plan::StormAndWipes => {
                self.coordinator.put_leaseless_leader_by_hand(&election(ELECTIONS[1]));
            }
            _ => {}
        }
    }

    pub(super) fn crash(&mut self, index: usize) {
        let node = &mut self.nodes[index];
        node.life += 1;
        node.up = false;
        node.tenures.clear();
        node.watches.clear();
        let delay = millis(self.rng.u64(10..3000));
        self.schedule(index, delay, Delivery::Restart);
    }

    pub(super) fn wake_watches(&mut self, index: usize) {
        if self.nodes[index].cut_until > self.now {
            return;
        }
        for name in self.names.clone() {
            let Some(from) = self.nodes[index].watches.get(&name).copied() else { continue };
            if let Some(at) = self.coordinator.changed_since(self.now, &name, from) {
                self.nodes[index].watches.insert(name.clone(), at.next());
                let delay = self.delay();
                self.schedule(index, delay, Delivery::Answer(Event::Woken(name.clone())));
            }
            if self.stormy() && self.rng.u32(0..400) == 0 {
                self.nodes[index].watches.remove(&name);
                self.schedule(index, Duration::ZERO, Delivery::Answer(Event::WatchEnded(name)));
            }
        }
    }

    /// How long a message is under way: mostly short, in a storm sometimes longer than anybody waits.
    pub(super) fn delay(&mut self) -> Duration {
        match self.rng.u32(0..100) {
            0..2 if self.stormy() => millis(self.rng.u64(500..4000)),
            2..8 if self.stormy() => millis(self.rng.u64(20..400)),
            _ => millis(self.rng.u64(0..5)),
        }
    }

    pub(super) fn lost(&mut self, index: usize) -> bool {
        self.nodes[index].cut_until > self.now || self.stormy() && self.rng.u32(0..100) < 3
    }
}

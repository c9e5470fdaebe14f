//! The nemesis: it picks faults from a seed, does them, undoes them when their time is over, and starts what has ended by
//! itself, as a supervisor of services would.
//!
//! It first goes through every kind in a random order, then picks at random; a kind that was not what it was meant to be (a
//! hand-over that was refused) is done again, until one was. Several faults are there at a time where they do
//! not take hold of the same thing; most replicas are left alone at any time. The seed decides on kinds, strengths and times;
//! which replica it meets also depends on who leads.

use std::collections::BTreeSet;
use std::time::Duration;

use bursar::clock::boottime;
use bursar::domain::Moment;
use serde_json::json;

use super::Plan;
use super::acts::{Mend, Mended};
use super::ground::{Ground, TTL};
use super::history::{History, millis};
use super::kind::{Hold, Kind};
use crate::support::cluster::ELECTION;
use crate::support::etcd::EtcdSnapshot;
use crate::support::{Proxy, Replica, Sampler};

/// How often it looks whether something is due.
const LOOK: Duration = Duration::from_millis(50);
/// From one fault to the next.
const GAP: (Duration, Duration) = (Duration::from_millis(300), Duration::from_millis(4500));
/// So long ago a leader may have said so to be taken for the leader.
const RECENT: Duration = Duration::from_millis(600);
/// A fault that could not be undone yet is tried again after this.
const AGAIN: Duration = Duration::from_secs(1);
/// Of ten faults of a replica so many are done to the leader.
const TO_THE_LEADER: u32 = 6;
/// How long before it is used a snapshot of etcd was taken, at least.
const OLDER: Duration = Duration::from_secs(20);
/// The longest that a look at the database may take.
const ASK: Duration = Duration::from_secs(5);

/// A fault that was done.
#[derive(Debug, Clone, Copy)]
pub struct Fault {
    /// Of which kind.
    pub kind: Kind,
    /// To which replica, where it was done to one.
    pub replica: Option<usize>,
    /// When it began.
    pub from: Moment,
    /// When it was over; `None` while it is not.
    pub until: Option<Moment>,
    /// Whether it was what it was meant to be, as far as is known.
    pub hit: bool,
}

/// A fault that is there.
#[derive(Debug)]
struct Active {
    fault: usize,
    holds: Vec<Hold>,
    mend_at: Moment,
    mend: Mend,
}

/// The nemesis.
pub struct Nemesis<'a> {
    pub(super) ground: &'a Ground,
    pub(super) receiver: &'a crate::support::receiver::Receiver,
    pub(super) history: &'a History,
    pub(super) rng: fastrand::Rng,
    pub(super) snapshot: Option<(Moment, EtcdSnapshot)>,
    /// The audit compares times of the store's clock: what the clock was stepped over counts as halted or not for all.
    pub(super) no_halt_before: Moment,
    pub(super) last_halt: Moment,
    sampler: &'a Sampler,
    active: Vec<Active>,
    at_a_time: usize,
    kinds: Vec<Kind>,
    first: Vec<Kind>,
    faults: Vec<Fault>,
    /// What ended by itself, or not as it was asked to.
    pub(super) ended: Vec<String>,
}

/// What a nemesis has done.
#[derive(Debug, Default)]
pub struct Done {
    /// Every fault.
    pub faults: Vec<Fault>,
    /// What ended by itself, or not as it was asked to, and was started again; with how it ended.
    pub ended: Vec<String>,
}

impl<'a> Nemesis<'a> {
    /// One that has done nothing yet.
    pub fn new(
        plan: &Plan,
        ground: &'a Ground,
        receiver: &'a crate::support::receiver::Receiver,
        sampler: &'a Sampler,
        history: &'a History,
    ) -> Self {
        let mut rng = fastrand::Rng::with_seed(plan.seed);
        let possible = |kind: &Kind| *kind != Kind::FullDisk || ground.disk.is_some();
        let kinds: Vec<Kind> = plan.kinds.iter().copied().filter(possible).collect();
        let mut first = kinds.clone();
        rng.shuffle(&mut first);
        Self {
            ground,
            receiver,
            history,
            rng,
            snapshot: None,
            no_halt_before: Moment::BOOT,
            last_halt: Moment::BOOT,
            sampler,
            active: Vec::new(),
            at_a_time: plan.at_a_time,
            kinds,
            first,
            faults: Vec::new(),
            ended: Vec::new(),
        }
    }

    /// Does faults for so long, at least one of each kind, and undoes them all.
    pub async fn rage(mut self, time: Duration) -> Done {
        let begun = boottime();
        if self.kinds.contains(&Kind::RestoreCoordinator) {
            self.take_snapshot();
        }
        let mut next = begun;
        // One of each kind may take longer than asked for; what cannot be done in thrice the time is found missing.
        let most = time.saturating_mul(3);
        while boottime().since(begun) < most {
            self.mend_what_is_due(boottime());
            self.start_what_has_ended();
            let over = boottime().since(begun) >= time;
            if over && self.first.is_empty() && self.active.is_empty() && self.has_been_refused().await {
                break;
            }
            let wanted = !over || !self.first.is_empty();
            if wanted && self.active.len() < self.at_a_time && boottime() >= next && self.strike().await {
                next = boottime() + self.between(GAP.0, GAP.1);
            }
            tokio::time::sleep(LOOK).await;
        }
        while !self.active.is_empty() {
            self.mend_what_is_due(boottime());
            tokio::time::sleep(LOOK).await;
        }
        self.start_what_has_ended();
        self.ground.cluster.replicas().iter().for_each(Replica::heal);
        self.ground.receiver_lines.iter().for_each(Proxy::heal);
        Done { faults: self.faults, ended: self.ended }
    }

    /// Whether the fence has refused something; where it has not, the kind that makes it is done once more.
    async fn has_been_refused(&mut self) -> bool {
        if !self.kinds.contains(&Kind::DeleteKeyUnheard) {
            return true;
        }
        let query = "select count(*) from bursar.fence_reject";
        let asked = tokio::time::timeout(ASK, self.ground.cluster.database().try_rows::<(i64,)>(query)).await;
        match asked.ok().and_then(Result::ok).as_deref() {
            Some([(count,)]) if *count > 0 => return true,
            Some(_) => self.first.push(Kind::DeleteKeyUnheard),
            None => {}
        }
        false
    }

    /// A time between two, by the millisecond.
    pub(super) fn between(&mut self, least: Duration, most: Duration) -> Duration {
        Duration::from_millis(self.rng.u64(millis(least)..=millis(most)))
    }

    /// That many tenths of a TTL, from the least to the most.
    pub(super) fn ttls(&mut self, least: u32, most: u32) -> Duration {
        self.between(TTL * least / 10, TTL * most / 10)
    }

    /// Whether a fault has taken hold of that.
    pub(super) fn held(&self, hold: Hold) -> bool {
        self.active.iter().any(|active| active.holds.contains(&hold))
    }

    fn replicas_held(&self) -> BTreeSet<usize> {
        let holds = self.active.iter().flat_map(|active| &active.holds);
        let replicas = holds.filter_map(|hold| if let Hold::Replica(replica) = hold { Some(*replica) } else { None });
        replicas.collect()
    }

    /// Who leads, as far as is known.
    pub(super) fn leader(&self) -> Option<usize> {
        self.sampler.leader_within(ELECTION, RECENT)
    }

    /// The replica that a fault is done to: often the leader; never so many that the rest is no majority.
    fn target(&mut self) -> Option<usize> {
        let (held, all) = (self.replicas_held(), self.ground.cluster.replicas().len());
        if (held.len() + 1) * 2 > all {
            return None;
        }
        if self.rng.u32(0..10) < TO_THE_LEADER
            && let Some(leader) = self.leader().filter(|leader| !held.contains(leader))
        {
            return Some(leader);
        }
        let free: Vec<usize> = (0..all).filter(|replica| !held.contains(replica)).collect();
        self.rng.choice(free)
    }

    /// The next kind: of those that were not there yet, else any.
    fn pick(&mut self) -> Option<(Kind, usize)> {
        let candidates = if self.first.is_empty() {
            let mut any = self.kinds.clone();
            self.rng.shuffle(&mut any);
            any
        } else {
            self.first.clone()
        };
        let target = self.target();
        candidates.into_iter().find_map(|kind| {
            let replica = match kind {
                // One that is sound so far.
                _ if kind.is_of_the_leader() => {
                    self.leader().filter(|leader| target.is_some() && !self.held(Hold::Replica(*leader)))?
                }
                _ if kind.is_of_a_replica() => target?,
                _ => 0,
            };
            let free = kind.holds(replica).into_iter().all(|hold| !self.held(hold));
            (free && self.may(kind)).then_some((kind, replica))
        })
    }

    /// Whether nothing else stands against a kind now.
    fn may(&self, kind: Kind) -> bool {
        match kind {
            Kind::Halt => boottime() >= self.no_halt_before && !self.held(Hold::Store),
            Kind::Transfer | Kind::Cordon | Kind::LateRequests => {
                self.leader().is_some() && !self.held(Hold::Store) && !self.held(Hold::Coordinator)
            }
            Kind::RestoreCoordinator => {
                self.snapshot.as_ref().is_some_and(|(taken, _)| boottime().since(*taken) >= OLDER)
            }
            _ => true,
        }
    }

    /// Does one fault; says whether it could.
    async fn strike(&mut self) -> bool {
        let Some((kind, replica)) = self.pick() else { return false };
        let from = boottime();
        let Some((told, lasts, mend)) = self.act(kind, replica).await else { return false };
        self.first.retain(|first| *first != kind);
        let of = kind.is_of_a_replica().then_some(replica);
        let line = json!({
            "kind": format!("{kind:?}"), "replica": of, "how": told, "lasts_ms": millis(lasts),
            "leader": self.leader(),
        });
        self.history.note_at(from, "fault", line);
        self.faults.push(Fault { kind, replica: of, from, until: None, hit: true });
        let fault = self.faults.len() - 1;
        self.active.push(Active { fault, holds: kind.holds(replica), mend_at: boottime() + lasts, mend });
        true
    }

    fn mend_what_is_due(&mut self, now: Moment) {
        let mut at = 0;
        while at < self.active.len() {
            if self.active[at].mend_at > now {
                at += 1;
                continue;
            }
            let mut active = self.active.swap_remove(at);
            let kind = self.faults[active.fault].kind;
            match self.mend(&mut active.mend) {
                Mended::Done(told) => {
                    self.faults[active.fault].until = Some(boottime());
                    self.history.note("mended", json!({ "kind": format!("{kind:?}"), "how": told }));
                }
                Mended::Missed(told) => {
                    let fault = &mut self.faults[active.fault];
                    (fault.until, fault.hit) = (Some(boottime()), false);
                    self.history.note("missed", json!({ "kind": format!("{kind:?}"), "how": told }));
                    if !self.first.contains(&kind) && !self.faults.iter().any(|fault| fault.kind == kind && fault.hit) {
                        self.first.push(kind);
                    }
                }
                Mended::NotYet(why) => {
                    self.history.note("not mended", json!({ "kind": format!("{kind:?}"), "why": why }));
                    active.mend_at = boottime() + AGAIN;
                    self.active.push(active);
                }
                Mended::GoesOn => {
                    active.mend_at = boottime() + LOOK;
                    self.active.push(active);
                }
            }
        }
    }

    /// Starts replicas, and the database, that have ended by themselves, as a supervisor does.
    fn start_what_has_ended(&mut self) {
        let postgres = &self.ground.postgres;
        if !self.held(Hold::Store) && !postgres.is_running() {
            let from = boottime();
            self.history.note("ended by itself", json!({ "postgres": true }));
            self.ended.push("the database".to_owned());
            postgres.kill();
            postgres.start_again();
            let until = Some(boottime());
            self.faults.push(Fault { kind: Kind::KillStore, replica: None, from, until, hit: false });
        }
        let held = self.replicas_held();
        for (index, replica) in self.ground.cluster.replicas().iter().enumerate() {
            if held.contains(&index) || replica.is_running() {
                continue;
            }
            let how = replica.end_within(Duration::ZERO).map_or_else(String::new, |status| status.to_string());
            self.history
                .note("ended by itself", json!({ "replica": index, "how": how, "log": last_lines(&replica.log()) }));
            self.ended.push(format!("r{index}: {how}"));
            replica.start();
        }
    }

    /// Copies what etcd has now, to be put back later.
    pub(super) fn take_snapshot(&mut self) {
        let from = boottime();
        self.snapshot = Some((from, self.ground.etcd.snapshot()));
        self.history.note_at(from, "snapshot", json!({}));
        // All members hold still for it.
        // That is no fault of its own to be counted.
        self.faults.push(Fault { kind: Kind::FreezeMember, replica: None, from, until: Some(boottime()), hit: false });
    }
}

/// The end of a log, for the history.
pub(super) fn last_lines(log: &str) -> Vec<&str> {
    let lines: Vec<&str> = log.lines().collect();
    lines.get(lines.len().saturating_sub(12)..).unwrap_or_default().to_vec()
}

//! Chains of random faults: the leader dies, is stopped, or is cut off at a random step of an instruction, again and again, while
//! payouts go out. The receiver's book is the judge.
//!
//! Each replica is started with the fault that meets it once it leads, so that a chain costs a takeover per fault and no more. A
//! chain is made from its seed, which is printed; what the machine does between two steps is not.

use std::collections::BTreeMap;
use std::time::Duration;

use bursar::clock::random_u64;
use serde_json::Value;

use super::{PAID, READY, job};
use crate::support::cluster::ELECTION;
use crate::support::receiver::{Act, Logged, Receiver, Said, say};
use crate::support::{Cluster, Entries, Etcd, Pair, Setup, eventually, repetitions};

/// Steps of an instruction's way at which a leader is met, in their order; the last one is met when a request has left.
const STEPS: [&str; 8] = [
    "tenure.payouts.before_take",
    "store.payouts.after_take",
    "tenure.payouts.after_take",
    "tenure.payouts.before_first_byte",
    "tenure.payouts.before_record",
    "store.payouts.after_record",
    "tenure.payouts.after_record",
    LEFT,
];
/// A request has left and is not answered.
const LEFT: &str = "a request has left";
/// Faults of one chain.
const CHAIN: usize = 15;
/// Payouts that are brought in at a time.
const AT_A_TIME: usize = 6;
/// A lease that lapses, and what follows, on a busy machine.
const TAKEOVER: Duration = Duration::from_mins(1);
/// A fault that was not met meanwhile is brought on by more payouts.
const MET_WITHIN: Duration = Duration::from_secs(4);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// SIGKILL.
    Crash,
    /// SIGSTOP, until another leads.
    Stop,
    /// No packet to etcd, to the database, or to both, until another leads.
    Cut { etcd: bool, database: bool },
}

/// What meets a replica once it leads.
#[derive(Debug, Clone, Copy)]
struct Plan {
    fault: Fault,
    step: &'static str,
    /// The how manieth time.
    at: u64,
    /// Whether the lease is taken away at once, or lapses.
    revoked: bool,
}

/// Numbers from a seed (`SplitMix64`).
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).expect("below a small number")
    }

    fn one_in(&mut self, of: usize) -> bool {
        self.below(of) == 0
    }
}

struct Chain {
    seed: u64,
    dice: Dice,
    pair: Pair,
    idempotent: bool,
    receiver: Receiver,
    cluster: Cluster,
    plans: [Option<Plan>; 2],
    imported: usize,
    files: usize,
}

impl Chain {
    async fn begin(seed: u64, pair: Pair, idempotent: bool) -> Self {
        let receiver = Receiver::start().await;
        let paying = job(&receiver, idempotent).cron("*/2 * * * * *").payout("max_in_flight", "3");
        let setup = Setup::new(2, &paying.text()).on(pair).key("coordinator", "resign_without_store", "\"5s\"");
        let setup = if pair == Pair::EtcdPostgres { setup.behind_proxies() } else { setup };
        let cluster = setup.prepare().await;
        let (plans, dice) = ([None, None], Dice(seed));
        let mut chain = Self { seed, dice, pair, idempotent, receiver, cluster, plans, imported: 0, files: 0 };
        for replica in 0..2 {
            chain.start(replica);
            chain.cluster.replica(replica).wait_ready(READY).await;
        }
        chain
    }

    fn plan(&mut self) -> Plan {
        let fault = match (self.pair, self.dice.below(5)) {
            (_, 0 | 1) => Fault::Crash,
            (_, 2) | (Pair::PostgresAlone | Pair::Embedded, _) => Fault::Stop,
            (Pair::EtcdPostgres, 3) => Fault::Cut { etcd: true, database: false },
            (Pair::EtcdPostgres, _) => Fault::Cut { etcd: self.dice.one_in(2), database: true },
        };
        let step = STEPS[self.dice.below(STEPS.len())];
        Plan { fault, step, at: 1 + self.dice.next() % 3, revoked: self.dice.one_in(2) }
    }

    /// Starts a replica with what will meet it.
    fn start(&mut self, replica: usize) {
        let plan = self.plan();
        self.plans[replica] = Some(plan);
        let replica = self.cluster.replica(replica);
        let action = match plan.fault {
            Fault::Crash => "crash",
            Fault::Stop => "stop",
            Fault::Cut { .. } => "pause",
        };
        let points = format!("{}={action}@{}", plan.step, plan.at);
        replica.set_chaos(if plan.step == LEFT { "" } else { &points });
        replica.start();
    }

    /// Brings new payouts in, each to a merchant of its own, and lays out what becomes of the next requests.
    fn import(&mut self) {
        self.files += 1;
        let acts: Vec<Act> = (0..AT_A_TIME).filter_map(|_| self.act()).collect();
        self.receiver.next(acts);
        let file = format!("f{}-", self.files);
        let entries = (0..AT_A_TIME)
            .fold(Entries::with_ids(&file), |entries, n| entries.capture(&format!("{file}{n}"), "EUR", "10.00"));
        self.cluster.import(&entries, "psp").ok();
        self.imported += AT_A_TIME;
    }

    fn act(&mut self) -> Option<Act> {
        match self.dice.below(12) {
            0 => Some(Act::BookAndReset),
            1 => Some(Act::Reset),
            2 | 3 => Some(Act::Say(say(429, &[], ""))),
            4 => Some(Act::Say(say(503, &[], ""))),
            5..=7 => Some(Act::BookSlowly(Duration::from_millis(30 * (1 + self.dice.next() % 8)))),
            _ => None,
        }
    }

    /// Whether a replica has met what it was started with.
    fn has_met(&self, replica: usize) -> bool {
        let Some(plan) = self.plans[replica] else { return false };
        let replica = self.cluster.replica(replica);
        plan.step != LEFT && (!replica.is_running() || (plan.fault != Fault::Crash && replica.has_hit(plan.step)))
    }

    /// Waits for a leader that is not this one. Whoever has met its fault has led: it may have had something to send at once.
    async fn wait_leader(&self, except: Option<usize>) -> usize {
        eventually(TAKEOVER, "one leads, or has met its fault", async || {
            for index in (0..2).filter(|index| Some(*index) != except) {
                let replica = self.cluster.replica(index);
                if self.has_met(index) || (replica.is_running() && replica.leads(ELECTION).await) {
                    return Some(index);
                }
            }
            None
        })
        .await
    }

    /// One fault, from the leader that it meets to the leader that follows.
    #[expect(clippy::print_stderr, reason = "a seed is printed before what it breaks")]
    async fn round(&mut self) {
        let leader = self.wait_leader(None).await;
        let plan = self.plans[leader].expect("it was started");
        eprintln!("seed {:#018x}: {plan:?}", self.seed);
        let lease = if self.pair == Pair::EtcdPostgres {
            Etcd::shared().list(&self.cluster.leader_key()).await.first().map(|found| found.2)
        } else {
            None
        };
        self.meet(leader, plan).await;
        match plan.fault {
            Fault::Crash => {}
            Fault::Stop => {
                if plan.step == LEFT {
                    self.cluster.replica(leader).stop();
                }
            }
            Fault::Cut { etcd, database } => {
                if etcd {
                    self.cluster.replica(leader).cut_from_etcd();
                }
                if database {
                    self.cluster.replica(leader).cut_from_database();
                }
                if plan.step != LEFT && self.dice.one_in(2) {
                    self.cluster.replica(leader).release(plan.step);
                }
            }
        }
        let cut_from_database_alone = matches!(plan.fault, Fault::Cut { etcd: false, .. });
        if let Some(lease) = lease
            && (plan.revoked || plan.fault == Fault::Crash)
            && !cut_from_database_alone
            && Etcd::shared().list(&self.cluster.leader_key()).await.iter().any(|found| found.2 == lease)
        {
            Etcd::shared().revoke(lease).await;
        }
        if cut_from_database_alone && plan.step != LEFT {
            // It is to find out by itself that it has no store.
            self.cluster.replica(leader).release(plan.step);
        }
        self.wait_leader(Some(leader)).await;
        if self.cluster.replica(leader).is_running() {
            // It goes on in the middle of the step, under a term that is over.
            if plan.fault == Fault::Stop {
                self.cluster.replica(leader).cont();
            } else {
                if plan.step != LEFT {
                    self.cluster.replica(leader).release(plan.step);
                }
                self.cluster.replica(leader).heal();
            }
            eventually(TAKEOVER, "it is ready again, or has ended", async || {
                let replica = self.cluster.replica(leader);
                if !replica.is_running() {
                    return Some(());
                }
                (replica.readyz().await?.0 == 200).then_some(())
            })
            .await;
            if self.cluster.replica(leader).is_running() {
                self.cluster.replica(leader).kill();
            }
        }
        self.start(leader);
        eventually(TAKEOVER, "it is ready, or has met its fault", async || {
            if self.has_met(leader) {
                return Some(());
            }
            (self.cluster.replica(leader).readyz().await?.0 == 200).then_some(())
        })
        .await;
    }

    /// Brings payouts in until the leader has met its fault.
    async fn meet(&mut self, leader: usize, plan: Plan) {
        for _ in 0..8 {
            if self.has_met(leader) {
                return;
            }
            let before = self.receiver.log().len();
            if plan.step == LEFT {
                self.receiver.next(vec![Act::BookSlowly(Duration::from_millis(900)); 2]);
            }
            self.import();
            let begun = bursar::clock::boottime();
            while bursar::clock::boottime().since(begun) < MET_WITHIN {
                let replica = self.cluster.replica(leader);
                if plan.step == LEFT {
                    if self.receiver.log().len() > before {
                        if plan.fault == Fault::Crash {
                            replica.kill();
                        }
                        return;
                    }
                } else if self.has_met(leader) {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            // Another may lead by now: on a machine that is busy for a whole lease, leadership ends by itself.
            if !self.cluster.replica(leader).leads(ELECTION).await {
                return;
            }
        }
        panic!("seed {:#018x}: {plan:?} was not met in {} files", self.seed, self.files);
    }

    /// The last leader dies too, and one that nothing meets does what is left.
    #[expect(clippy::print_stderr, reason = "what a seed came to")]
    async fn end(mut self) {
        let leader = self.wait_leader(None).await;
        let other = 1 - leader;
        let replica = self.cluster.replica(other);
        replica.kill();
        replica.set_chaos("");
        replica.start();
        replica.wait_ready(READY).await;
        self.import();
        if self.cluster.replica(leader).is_running() {
            self.cluster.replica(leader).kill();
        }
        let payouts = eventually(PAID * 2, "all that can be done is done", async || {
            let payouts = self.listed();
            let finished = |payout: &Value| {
                let state = payout["state"].as_str().unwrap_or_default();
                state == "paid" || (!self.idempotent && state == "held")
            };
            (payouts.len() == self.imported && payouts.iter().all(finished)).then_some(payouts)
        })
        .await;
        self.receiver.judge();
        let mut requests: BTreeMap<String, Vec<Logged>> = BTreeMap::new();
        for logged in self.receiver.log().into_iter().filter(|logged| logged.method == "POST") {
            requests.entry(logged.key.clone()).or_default().push(logged);
        }
        let (mut held, mut booked) = (0, 0);
        for payout in &payouts {
            let key = payout["key"].as_str().expect("a key");
            let tries = requests.remove(key).unwrap_or_default();
            let payment = self.receiver.payment(key).await;
            booked += usize::from(payment.is_some());
            if payout["state"] == "paid" {
                assert!(payment.is_some(), "seed {:#018x}: paid here and not there: {payout}", self.seed);
            } else {
                held += 1;
                self.is_rightly_held(payout, &tries);
            }
            if !self.idempotent {
                let again = tries.iter().rev().skip(1).find(|earlier| earlier.said != Said::Undone);
                assert!(again.is_none(), "seed {:#018x}: sent again after {again:?}: {payout}", self.seed);
                let open = tries.iter().any(|logged| logged.said == Said::Unclear);
                assert!(
                    !open || payout["state"] == "held",
                    "seed {:#018x}: its outcome is unknown: {payout}",
                    self.seed
                );
            }
        }
        assert!(requests.is_empty(), "seed {:#018x}: requests of no payout: {requests:?}", self.seed);
        let (seed, imported, idempotent) = (self.seed, self.imported, self.idempotent);
        eprintln!("seed {seed:#018x}: {imported} payouts, {booked} booked, {held} held (idempotent: {idempotent})");
        self.cluster.assert_audited();
    }

    /// Its outcome is not known: the receiver left it open, or its sender was met by a fault.
    fn is_rightly_held(&self, payout: &Value, tries: &[Logged]) {
        let open = tries.last().is_some_and(|logged| logged.said == Said::Unclear);
        let why = payout["last_error"].as_str().unwrap_or_default();
        let lost = why.contains("ended before an answer") || why.contains("no answer") || why.contains("handed over");
        let right = payout["reason"] == "unknown" && payout["in_doubt"] == true && (open || lost);
        assert!(right, "seed {:#018x}: held for no reason: {payout}, after {tries:?}", self.seed);
    }

    fn listed(&self) -> Vec<Value> {
        let listed = self.cluster.command(&["payouts", "list", "--limit", "10000", "--json"]).ok().json();
        listed.as_array().expect("a list").clone()
    }
}

/// So many faults, in chains of [`CHAIN`] at most.
async fn storm(what: &str, pair: Pair, idempotent: bool) {
    let asked = std::env::var("BURSAR_TEST_SEED").ok();
    let asked =
        asked.map(|seed| u64::from_str_radix(seed.trim_start_matches("0x"), 16).expect("a seed in hexadecimal"));
    let mut left = repetitions(&format!("faults at a random step of a payout, {what}"), 3, 75);
    while left > 0 {
        let mut chain = Chain::begin(asked.unwrap_or_else(random_u64), pair, idempotent).await;
        let faults = left.min(CHAIN);
        for _ in 0..faults {
            chain.round().await;
        }
        chain.end().await;
        left -= faults;
    }
}

#[tokio::test]
async fn whatever_meets_the_leader_an_idempotent_receiver_books_each_payment_once() {
    storm("idempotent, on PostgreSQL", Pair::EtcdPostgres, true).await;
}

#[tokio::test]
async fn whatever_meets_the_leader_nothing_is_sent_again_that_may_have_had_its_effect() {
    storm("not idempotent, on PostgreSQL", Pair::EtcdPostgres, false).await;
}

#[tokio::test]
async fn on_sqlite_whatever_meets_the_leader_an_idempotent_receiver_books_each_payment_once() {
    storm("idempotent, on SQLite", Pair::Embedded, true).await;
}

#[tokio::test]
async fn on_sqlite_whatever_meets_the_leader_nothing_is_sent_again_that_may_have_had_its_effect() {
    storm("not idempotent, on SQLite", Pair::Embedded, false).await;
}

//! What the faults are done to: three members of etcd, one PostgreSQL, replicas as processes with a line of their own to each
//! server and to the reference receiver.

use std::time::Duration;

use bursar::clock::boottime;

use super::Plan;
use super::kind::Kind;
use crate::support::cluster::ELECTION;
use crate::support::receiver::Receiver;
use crate::support::{
    Calls, Cluster, Etcd, FakeClock, Job, LedgerJob, Postgres, Proxy, Replica, Setup, SmallDisk, schedule,
};

/// The lease of every replica.
pub const TTL: Duration = Duration::from_secs(5);
/// A renewal interval and a second: so long two may seem to lead where etcd itself was tampered with.
pub const TWO_LEADERS: Duration = Duration::from_secs(2);
/// Megabytes under the database, where it stands on a disk that can be filled.
const DISK: u32 = 1500;
/// A command that an operator gives up on, and asks again.
const COMMAND: Duration = Duration::from_secs(25);

/// A job of the schedule: its name, the source of its entries, and the seconds from tick to tick.
#[derive(Debug, Clone, Copy)]
pub struct Scheduled {
    /// Its name.
    pub name: &'static str,
    /// The source of what it settles; none where its units are calls.
    pub source: Option<&'static str>,
    /// Seconds.
    pub every: i64,
    /// At which second of these it ticks.
    pub at: i64,
}

/// All jobs: payouts to a receiver that is idempotent and to the same one as if it were not, payouts that stay in the store,
/// and calls of the outside.
pub const JOBS: [Scheduled; 4] = [
    Scheduled { name: "pays", source: Some("a"), every: 10, at: 0 },
    Scheduled { name: "pays-once", source: Some("b"), every: 10, at: 5 },
    Scheduled { name: "keeps", source: Some("c"), every: 60, at: 0 },
    Scheduled { name: "calls", source: None, every: 10, at: 2 },
];

/// Everything that faults are done to. Dropped, all of it is gone.
#[derive(Debug)]
pub struct Ground {
    /// The replicas, and their database.
    pub cluster: Cluster,
    /// For an operator's commands: nothing is between it and its servers.
    pub operator: Replica,
    /// The wall clock of each replica.
    pub clocks: Vec<FakeClock>,
    /// The wall clock of the database.
    pub store_clock: FakeClock,
    /// The line of each replica to the receiver.
    pub receiver_lines: Vec<Proxy>,
    /// The coordinator.
    pub etcd: Etcd,
    /// The database.
    pub postgres: Postgres,
    /// What is below the database; none where this process may not mount it.
    pub disk: Option<SmallDisk>,
    /// What the calls of the outside were written down in.
    pub calls: Calls,
}

impl Ground {
    /// Makes it ready and starts it; waits for nothing.
    pub async fn prepare(plan: &Plan, receiver: &Receiver) -> Self {
        let etcd = Etcd::start(3);
        let disk = if plan.kinds.contains(&Kind::FullDisk) { SmallDisk::mount(DISK) } else { None };
        let store_clock = FakeClock::new();
        let env = if plan.kinds.contains(&Kind::StoreClock) { store_clock.env() } else { Vec::new() };
        let postgres = match &disk {
            Some(disk) => {
                let folder = disk.folder().join("server");
                std::fs::create_dir(&folder).expect("the disk is new");
                Postgres::start_in(folder, &[], &env)
            }
            None => Postgres::start_with(&[], &env),
        };
        let calls = Calls::none_yet();
        let text = jobs(&receiver.url(), &calls);
        let setup = Setup::new(plan.replicas, &text).behind_proxies().on_etcd(&etcd).on_postgres(&postgres);
        let cluster = setup.ttl(TTL.as_secs()).key("coordinator", "drain", "\"3s\"").prepare().await;
        let operator = cluster.replica(0).beside("operator", &etcd.endpoints(), &cluster.database().url());
        let clocks: Vec<FakeClock> = cluster.replicas().iter().map(|_| FakeClock::new()).collect();
        if plan.kinds.contains(&Kind::ReplicaClock) {
            for (replica, clock) in cluster.replicas().iter().zip(&clocks) {
                clock.env().iter().for_each(|(key, value)| replica.set_env(key, value));
            }
        }
        let receiver_lines: Vec<Proxy> = cluster.replicas().iter().map(|_| Proxy::to(receiver.port())).collect();
        for (replica, line) in cluster.replicas().iter().zip(&receiver_lines) {
            replica.set_env("BURSAR_CHAOS_DETOUR", &format!("{}={}", receiver.port(), line.port()));
            if let Some(mutant) = plan.mutant {
                replica.set_env("BURSAR_MUTANTS", mutant);
            }
        }
        cluster.replicas().iter().for_each(Replica::start);
        Self { cluster, operator, clocks, store_clock, receiver_lines, etcd, postgres, disk, calls }
    }

    /// A replica for commands of one more thread.
    pub fn another_operator(&self, id: &str) -> Replica {
        self.cluster.replica(0).beside(id, &self.etcd.endpoints(), &self.cluster.database().url())
    }
}

/// The schedule.
fn jobs(url: &str, calls: &Calls) -> String {
    let paying = |name: &str, source: &str, cron: &str, idempotent: &str| {
        LedgerJob::new(name)
            .cron(cron)
            .key("misfire", "\"run_all\"")
            .batch(10, 2)
            .ledger("sources", &format!("[\"{source}\"]"))
            .paying(url)
            .payout("idempotent", idempotent)
            .payout("refusals", "[402, 422]")
            .payout("timeout", "\"2s\"")
            .text()
    };
    let keeping = LedgerJob::new("keeps").cron("* * * * *").key("misfire", "\"run_all\"").batch(10, 2);
    let keeping = keeping.ledger("sources", "[\"c\"]").text();
    let calling = Job::calling("calls", 6, calls).cron("2-59/10 * * * * *").batch(3, 1).retry(50, "100ms..1s");
    let pays = paying("pays", "a", "*/10 * * * * *", "true");
    pays + &paying("pays-once", "b", "5-59/10 * * * * *", "false") + &keeping + &schedule(&[calling])
}

/// Runs a command of an operator and answers whether it succeeded, with what it wrote to its log; one that hangs is given up.
pub fn command(operator: &Replica, args: &[&str]) -> (Option<i32>, String) {
    let (process, begun) = (operator.begin(args), boottime());
    loop {
        if let Some(status) = process.ended() {
            return (status.code(), process.log());
        }
        if boottime().since(begun) > COMMAND {
            return (None, process.log());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The condition on the election of all jobs.
pub fn of_the_election(query: &str) -> String {
    format!("{query} election = '{ELECTION}'")
}

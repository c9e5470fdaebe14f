//! One replica on the runtime of whoever asks, for simulators: leadership, bridge, tenures and eligibility as
//! [`run_replica`](super::run_replica) joins them, without threads, files and ports. Not compiled into a release.
//!
//! Deliberately absent: the way to the store, the schedule file and the HTTP port. A simulator hands over what stands behind
//! them.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::board::Board;
use super::bridge::{ReportsToLeadership, hand_over_orders};
use super::eligibility::Eligibility;
use super::observers::{Observers, labels};
use crate::domain::{Claim, ElectionName, Term};
use crate::leadership::{
    Coordinator, ExitHook, Leadership, LeadershipHandle, LeadershipSettings, ReplicaDescription, Report,
};
use crate::store::{FenceHolder, Leader, Store, TenureLimits};
use crate::telemetry::Metrics;
use crate::tenure::{Reports, ScheduleInForce, Supervisor, TenureDeps, TenureSettings};

/// What a replica is made of.
pub struct SimulatedReplica {
    /// Who it is.
    pub replica: ReplicaDescription,
    /// The elections that it stands for.
    pub elections: Vec<ElectionName>,
    /// Its way to the coordinator.
    pub coordinator: Arc<dyn Coordinator>,
    /// Its way to the store.
    pub store: Arc<dyn Store>,
    /// The schedule, edited while running.
    pub schedule: watch::Receiver<Arc<ScheduleInForce>>,
    /// The lease's TTL.
    pub lease_ttl: Duration,
    /// How long an abrupt end may take.
    pub teardown_budget: Duration,
    /// How long a planned end may take.
    pub drain: Duration,
    /// What ends the process.
    pub exit: ExitHook,
    /// Told when a tenure has reported its end.
    pub ended: Arc<dyn Fn(&Claim) + Send + Sync>,
}

/// A replica at work. Dropped, all of it is gone, as by a crash.
pub struct Running {
    leadership: LeadershipHandle,
    board: Arc<Board>,
    tasks: JoinSet<&'static str>,
    over: CancellationToken,
}

impl Running {
    /// Tells it to hand over and leave.
    pub fn drain(&self) {
        self.board.draining();
        self.leadership.report(Report::Drain);
    }

    /// Whether it leads an election at this moment, by the gate that `bursar_leader` asks.
    #[must_use]
    pub fn leads(&self, election: &ElectionName) -> bool {
        self.board.gate(election).is_some_and(|gate| gate.leads_now())
    }

    /// The name of the first part that ends; `session` is the one that ends by itself after [`Self::drain`].
    pub async fn first_ended(&mut self) -> &'static str {
        match self.tasks.join_next().await {
            Some(Ok(name)) => name,
            Some(Err(_)) => "a task that panicked",
            None => "every task",
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.over.cancel();
    }
}

impl SimulatedReplica {
    /// Starts it on the current runtime.
    ///
    /// # Panics
    /// The metrics' buckets are wrong, which no configuration can make them.
    #[must_use]
    pub fn start(self) -> Running {
        let mut settings = LeadershipSettings::new(
            self.replica.clone(),
            self.elections.clone(),
            self.lease_ttl,
            self.teardown_budget,
            self.drain,
        );
        settings.exit = Arc::clone(&self.exit);
        let metrics = Metrics::new(labels(&self.elections)).expect("constant buckets");
        let board = Arc::new(Board::new(Arc::new(metrics), self.replica.clone(), self.elections.clone()));
        let clock = Arc::clone(&board);
        settings.store_time = Arc::new(move || clock.store_time());
        let client = Arc::clone(&self.coordinator);
        let observers = Observers(Arc::clone(&board));
        let (leadership, orders, session) =
            Leadership::in_place(settings, Box::new(move || client), Arc::new(observers.clone()));
        board.leadership(leadership.view());
        let over = CancellationToken::new();
        let mut tasks = JoinSet::new();
        tasks.spawn(named("session", session));
        let (to, from) = mpsc::unbounded_channel();
        let bridge = hand_over_orders(orders, to, Arc::clone(&board), Arc::clone(&self.coordinator));
        tasks.spawn(named("bridge", bridge));
        let reports = ReportsToLeadership { leadership: leadership.clone(), board: Arc::clone(&board) };
        let deps = TenureDeps {
            store: Arc::clone(&self.store),
            reports: Arc::new(Heard { reports, ended: self.ended }),
            observer: Arc::new(observers),
            schedule: self.schedule,
            permits: Arc::new(Semaphore::new(2)),
            receivers: Arc::default(),
            settings: TenureSettings {
                leader: Leader {
                    replica: self.replica.id.to_string(),
                    host: self.replica.host.clone(),
                    version: self.replica.version.clone(),
                },
                limits: TenureLimits {
                    connections: 3,
                    statement_timeout: Duration::from_secs(10),
                    lock_timeout: Duration::from_secs(5),
                    idle_in_transaction_timeout: Duration::from_mins(1),
                    acquire_timeout: Duration::from_secs(10),
                },
                advance_within: self.lease_ttl,
                teardown_budget: self.teardown_budget,
                lease_ttl: self.lease_ttl,
            },
        };
        tasks.spawn(named("supervisor", Supervisor::new(Arc::new(deps)).run(from)));
        let eligibility = Eligibility {
            store: self.store,
            leadership: leadership.clone(),
            board: Arc::clone(&board),
            elections: self.elections,
            replica: self.replica.id.to_string(),
            resign_without_store: self.lease_ttl,
        };
        tasks.spawn(named("eligibility", eligibility.run(over.clone())));
        Running { leadership, board, tasks, over }
    }
}

async fn named(name: &'static str, part: impl Future<Output = ()>) -> &'static str {
    part.await;
    name
}

/// Reports to leadership; the simulator hears of ends too, before leadership does.
struct Heard {
    reports: ReportsToLeadership,
    ended: Arc<dyn Fn(&Claim) + Send + Sync>,
}

impl Reports for Heard {
    fn fence_term(&self, election: &ElectionName, term: Result<Term, String>) {
        self.reports.fence_term(election, term);
    }
    fn accepted(&self, claim: &Claim) {
        self.reports.accepted(claim);
    }
    fn first_work(&self, claim: &Claim) {
        self.reports.first_work(claim);
    }
    fn promotion_failed(&self, claim: &Claim, why: &str) {
        self.reports.promotion_failed(claim, why);
    }
    fn fenced(&self, claim: &Claim, found: Option<FenceHolder>) {
        self.reports.fenced(claim, found);
    }
    fn fault(&self, claim: &Claim, why: &str) {
        self.reports.fault(claim, why);
    }
    fn ended(&self, claim: &Claim) {
        (self.ended)(claim);
        self.reports.ended(claim);
    }
    fn beat(&self) {
        self.reports.beat();
    }
}

//! One replica from its start to its end.
//!
//! Start: log, HTTP port (not ready), signals, store, leadership, tenures. End, on the first signal: drain and hand over,
//! then the tasks, the store's connections, the HTTP port; a second signal ends the process where it stands.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::board::Board;
use super::bridge::{ReportsToLeadership, hand_over_orders};
use super::eligibility::Eligibility;
use super::error::ReplicaError;
use super::observers::{Observers, labels};
use super::reading;
use super::schedule_file::{Watcher, in_force};
use super::shares::Shares;
use super::{binding, coordinator, host_name, start_log, store_link};
use crate::clock;
use crate::config::{Config, Elections, LOCK_TIMEOUT, ScheduleFile};
use crate::domain::job::JobDefinition;
use crate::domain::{ElectionName, ReplicaId};
use crate::leadership::{Leadership, LeadershipHandle, LeadershipSettings, ReplicaDescription, Report, TenureOrder};
use crate::lifecycle::{HARD_STOP_EXIT_CODE, Stop, StopSignals};
use crate::store::{Leader, Store, TenureLimits};
use crate::telemetry::{Metrics, traces};
use crate::tenure::{ScheduleInForce, Supervisor, TenureDeps, TenureSettings};
use crate::web::WebServer;

/// The longest that a session of a tenure may sit idle in a transaction. A successor ends it at once; this is for the case
/// that there is none.
const IDLE_IN_TRANSACTION: Duration = Duration::from_mins(1);
/// The longest wait of a tenure for a free connection.
const ACQUIRE_WITHIN: Duration = Duration::from_secs(10);
/// How often the workers beat for `/livez`.
const BEAT_EVERY: Duration = Duration::from_secs(1);
/// How often observations are moved into their buckets.
const UPKEEP_EVERY: Duration = Duration::from_secs(5);
/// Beyond drain and teardown, leaving may take so long: keys are deleted and the lease is revoked at the coordinator.
const LEAVE_WITHIN: Duration = Duration::from_secs(5);
/// How long the end waits for tasks, for the store's connections, and for the worker threads.
const END_WITHIN: Duration = Duration::from_secs(2);

/// Runs a replica until it is told to leave.
///
/// # Errors
/// [`ReplicaError`].
pub fn run_replica(config: Config, schedule: ScheduleFile) -> Result<(), ReplicaError> {
    start_log(&config);
    tracing::info!(configuration = config.origin, store = config.database.place.in_words(), "starting");
    let mut known = schedule.elections();
    if schedule.jobs.is_empty() {
        let (file, election) = (config.schedule.display(), JobDefinition::default_election());
        tracing::warn!(%file, %election,
            "no schedule: jobs that the store has go on as they were, and a file that is put there is taken up");
        known.insert(election);
    }
    let elections: Vec<ElectionName> = config.replica.elections.among(&known).into_iter().collect();
    if elections.is_empty() {
        let schedule = known.iter().map(ElectionName::as_str).collect::<Vec<_>>().join(", ");
        return Err(ReplicaError::NoElection { schedule });
    }
    let control = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let workers = tokio::runtime::Builder::new_multi_thread().thread_name("worker").enable_all().build()?;
    let start = Start {
        workers: workers.handle().clone(),
        stop: Stop::new(),
        config: Arc::new(config),
        schedule: in_force(schedule),
        elections,
    };
    let ended = control.block_on(start.run());
    workers.shutdown_timeout(END_WITHIN);
    ended
}

/// What a start has.
struct Start {
    workers: Handle,
    stop: Stop,
    config: Arc<Config>,
    schedule: Arc<ScheduleInForce>,
    elections: Vec<ElectionName>,
}

/// Tasks whose end is a fault, by name.
struct Parts {
    tasks: JoinSet<&'static str>,
    workers: Handle,
    /// Asks them to end.
    ending: CancellationToken,
}

impl Parts {
    fn spawn(&mut self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) {
        let named = async move {
            task.await;
            name
        };
        self.tasks.spawn_on(named, &self.workers);
    }

    /// The name of the first part that ends.
    async fn first_ended(&mut self) -> &'static str {
        match self.tasks.join_next().await {
            Some(Ok(name)) => name,
            Some(Err(_panicked)) => "a task that panicked",
            None => "every task",
        }
    }

    /// Asks them to end and waits for a moment.
    async fn end(mut self) {
        self.ending.cancel();
        let all = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(END_WITHIN, all).await.is_err() {
            tracing::warn!(left = self.tasks.len(), "tasks have not ended in time and are dropped");
        }
    }
}

impl Start {
    async fn run(self) -> Result<(), ReplicaError> {
        let hard = self.stop.hard.clone();
        let mut signals = JoinSet::new();
        signals.spawn(StopSignals::install()?.watch(self.stop.clone()));
        tokio::select! {
            ended = self.live() => ended,
            () = hard.cancelled() => {
                tracing::warn!(code = HARD_STOP_EXIT_CODE, "ends at once");
                std::process::exit(HARD_STOP_EXIT_CODE)
            }
        }
    }

    fn shares(&self) -> Shares {
        Shares::of(self.config.database.max_connections, self.elections.len())
    }

    fn describe(&self, id: ReplicaId) -> ReplicaDescription {
        ReplicaDescription {
            id,
            host: host_name(),
            address: self.config.replica.address.clone().unwrap_or_else(|| self.config.http.listen.to_string()),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            schedule_fingerprint: self.schedule.fingerprint.clone(),
        }
    }

    async fn live(self) -> Result<(), ReplicaError> {
        let id = self.config.replica.id.clone().unwrap_or_else(fresh_id);
        let mut replica = self.describe(id);
        let metrics =
            Metrics::new(labels(&self.elections)).map_err(|error| ReplicaError::Metrics(error.to_string()))?;
        let board = Arc::new(Board::new(Arc::new(metrics), replica.clone(), self.elections.clone()));
        board.schedule_in_force(Arc::clone(&self.schedule));
        let mut web = WebServer::start(self.config.http.listen, Arc::clone(&board) as Arc<_>)?;
        if self.config.replica.address.is_none() {
            // Port 0 asked the system for one.
            replica.address = web.address().to_string();
        }
        board.shown_at(&replica.address);
        let elections: Vec<&str> = self.elections.iter().map(ElectionName::as_str).collect();
        tracing::info!(replica = %replica.id, version = replica.version, http = %web.address(), ?elections, "starts");
        let mut parts =
            Parts { tasks: JoinSet::new(), workers: self.workers.clone(), ending: CancellationToken::new() };
        parts.spawn("the workers' beat", beat(Arc::clone(&board), parts.ending.clone()));
        if let Some(endpoint) = &self.config.traces.endpoint {
            let (traces, export) = traces(endpoint, replica.id.as_str(), board.metrics());
            board.takes_spans(traces);
            parts.spawn("the export of traces", export.run(parts.ending.clone()));
        }
        let soft = self.stop.soft.clone();
        let connect = store_link::connect(
            Arc::clone(&self.config),
            replica.id.to_string(),
            self.shares().of_sessions(),
            binding(&self.config),
            Arc::clone(&board),
        );
        let mut connecting = JoinSet::new();
        connecting.spawn_on(connect, &self.workers);
        let store = tokio::select! {
            connected = connecting.join_next() => match connected {
                Some(Ok(store)) => store?,
                Some(Err(_)) | None => return Err(ReplicaError::PartEnded("the way to the store")),
            },
            () = web.ended() => return Err(ReplicaError::PartEnded("the HTTP port")),
            () = soft.cancelled() => {
                tracing::info!("leaves before it has reached the store");
                return Ok(());
            }
        };
        let leadership = self.start_parts(&mut parts, &replica, &store, &board)?;
        let ended = tokio::select! {
            () = soft.cancelled() => self.leave(&leadership, &board).await,
            name = parts.first_ended() => Err(ReplicaError::PartEnded(name)),
            () = web.ended() => Err(ReplicaError::PartEnded("the HTTP port")),
            () = leadership.join() => Err(ReplicaError::PartEnded("the session's thread")),
        };
        parts.end().await;
        if tokio::time::timeout(END_WITHIN, store.close()).await.is_err() {
            tracing::warn!("the store's connections were not closed in time");
        }
        web.stop();
        if ended.is_ok() {
            tracing::info!("has left");
        }
        ended
    }

    /// Starts leadership and everything that hangs on it.
    fn start_parts(
        &self,
        parts: &mut Parts,
        replica: &ReplicaDescription,
        store: &Arc<dyn Store>,
        board: &Arc<Board>,
    ) -> Result<LeadershipHandle, ReplicaError> {
        let (leadership, orders) = self.start_leadership(replica.clone(), board)?;
        board.leadership(leadership.view());
        let (schedule, in_force) = watch::channel(Arc::clone(&self.schedule));
        let deps = self.tenure_deps(replica, store, &leadership, board, in_force);
        self.start_tenures(parts, deps, orders, board);
        let eligibility = Eligibility {
            store: Arc::clone(store),
            leadership: leadership.clone(),
            board: Arc::clone(board),
            elections: self.elections.clone(),
            replica: replica.id.to_string(),
            resign_without_store: self.config.coordinator.resign_without_store,
        };
        parts.spawn("eligibility", eligibility.run(parts.ending.clone()));
        let all = match &self.config.replica.elections {
            Elections::All => Some(self.elections.clone()),
            // Who stands for others is somebody else's choice.
            Elections::Named(_) => None,
        };
        let reading = reading::read(Arc::clone(store), Arc::clone(board), all, parts.ending.clone());
        parts.spawn("the store's status", reading);
        let watcher = Watcher {
            config: Arc::clone(&self.config),
            elections: self.elections.clone(),
            schedule,
            leadership: leadership.clone(),
            board: Arc::clone(board),
        };
        parts.spawn("the schedule file's watcher", watcher.run(parts.ending.clone()));
        Ok(leadership)
    }

    fn start_leadership(
        &self,
        replica: ReplicaDescription,
        board: &Arc<Board>,
    ) -> Result<(LeadershipHandle, mpsc::UnboundedReceiver<TenureOrder>), ReplicaError> {
        let times = &self.config.coordinator;
        let mut settings = LeadershipSettings::new(
            replica,
            self.elections.clone(),
            times.lease_ttl,
            times.teardown_budget,
            times.drain,
        );
        let clock = Arc::clone(board);
        settings.store_time = Arc::new(move || clock.store_time());
        let config = Arc::clone(&self.config);
        let factory = Box::new(move || coordinator(&config));
        Ok(Leadership::start(settings, factory, Arc::new(Observers(Arc::clone(board))))?)
    }

    fn tenure_deps(
        &self,
        replica: &ReplicaDescription,
        store: &Arc<dyn Store>,
        leadership: &LeadershipHandle,
        board: &Arc<Board>,
        schedule: watch::Receiver<Arc<ScheduleInForce>>,
    ) -> TenureDeps {
        let shares = self.shares();
        let limits = TenureLimits {
            connections: shares.of_a_tenure,
            statement_timeout: self.config.database.statement_timeout,
            lock_timeout: LOCK_TIMEOUT,
            idle_in_transaction_timeout: IDLE_IN_TRANSACTION,
            acquire_timeout: ACQUIRE_WITHIN,
        };
        let times = &self.config.coordinator;
        TenureDeps {
            store: Arc::clone(store),
            reports: Arc::new(ReportsToLeadership { leadership: leadership.clone(), board: Arc::clone(board) }),
            observer: Arc::new(Observers(Arc::clone(board))),
            schedule,
            permits: Arc::new(Semaphore::new(shares.permits)),
            receivers: Arc::default(),
            settings: TenureSettings {
                leader: Leader {
                    replica: replica.id.to_string(),
                    host: replica.host.clone(),
                    version: replica.version.clone(),
                },
                limits,
                advance_within: times.lease_ttl,
                teardown_budget: times.teardown_budget,
                lease_ttl: times.lease_ttl,
            },
        }
    }

    fn start_tenures(
        &self,
        parts: &mut Parts,
        deps: TenureDeps,
        orders: mpsc::UnboundedReceiver<TenureOrder>,
        board: &Arc<Board>,
    ) {
        let (to, from) = mpsc::unbounded_channel();
        // A client of its own: the session's belongs to the session's thread.
        let client = coordinator(&self.config);
        parts.spawn("the orders' bridge", hand_over_orders(orders, to, Arc::clone(board), client));
        parts.spawn("the supervisor of tenures", Supervisor::new(Arc::new(deps)).run(from));
    }

    /// Hands over and leaves.
    async fn leave(&self, leadership: &LeadershipHandle, board: &Board) -> Result<(), ReplicaError> {
        board.draining();
        leadership.report(Report::Drain);
        let times = &self.config.coordinator;
        let within = times.drain + times.teardown_budget * 2 + LEAVE_WITHIN;
        tokio::time::timeout(within, leadership.join()).await.map_err(|_elapsed| ReplicaError::LeavingTook(within))
    }
}

fn fresh_id() -> ReplicaId {
    let random = clock::random_id().simple().to_string();
    let part = random.get(..8).unwrap_or(&random);
    let allowed = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let host: String = host_name().chars().filter(allowed).take(100).collect();
    ReplicaId::new(format!("{host}-{part}")).expect("1 to 109 of the allowed characters")
}

/// The workers' own beat, from the start on; once there are tenures their supervisor beats too.
async fn beat(board: Arc<Board>, ending: CancellationToken) {
    let mut since_upkeep = Duration::ZERO;
    loop {
        board.beat();
        if since_upkeep >= UPKEEP_EVERY {
            board.metrics().upkeep();
            since_upkeep = Duration::ZERO;
        }
        if ending.run_until_cancelled(tokio::time::sleep(BEAT_EVERY)).await.is_none() {
            return;
        }
        since_upkeep += BEAT_EVERY;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_start_has_an_id_of_its_own() {
        assert_ne!(fresh_id(), fresh_id());
    }
}

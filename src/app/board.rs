//! The board: what is known of this replica, put up by whoever knows it, read by the HTTP port at any moment.
//!
//! Everything is in memory and behind short locks, so that health and metrics are answered also when the store hangs. What
//! came from the store carries the moment at which it was read.

mod picture;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use tokio::sync::watch;

use crate::clock;
use crate::domain::{ElectionName, Moment, Term};
use crate::leadership::{Gate, LeadershipView, ReplicaDescription, ReplicaRecord, SessionState};
use crate::store::{StatusView, StoreFigures};
use crate::telemetry::{ElectionObservation, Metrics, Observation, Traces};
use crate::tenure::ScheduleInForce;
use crate::web::Details;

/// The workers beat once a second; a replica whose last beat is older than this does not live.
pub(super) const BEAT_WITHIN: Duration = Duration::from_secs(5);

/// Whoever looks at the status page comes back sooner than this.
const LOOKED_AT_WITHIN: Duration = Duration::from_mins(1);

/// What is known of the store.
#[derive(Debug, Default)]
struct StoreSeen {
    /// The last check: the store could be led on, or why not.
    verdict: Option<Result<(), String>>,
    checked_at: Option<Moment>,
    /// The store's time, with the moment at which it was that.
    time: Option<(Moment, DateTime<Utc>)>,
    /// This machine's wall clock minus the store's.
    skew: TimeDelta,
    status: Option<(Moment, StatusView)>,
}

/// What is known of the schedule.
#[derive(Debug, Default)]
struct ScheduleSeen {
    in_force: Arc<ScheduleInForce>,
    /// What is wrong with the file as it is now, where the one in force goes on.
    refused: Option<String>,
}

/// What is known of this replica.
#[derive(Debug)]
pub(super) struct Board {
    metrics: Arc<Metrics>,
    replica: ReplicaDescription,
    /// Where the port that the system chose was not known to the description.
    address: OnceLock<String>,
    elections: Vec<ElectionName>,
    started_at: Moment,
    /// The same by the wall clock, to be shown, seconds since 1970.
    started_seconds: i64,
    last_beat: AtomicU64,
    draining: AtomicBool,
    in_flight: AtomicI64,
    leadership: OnceLock<watch::Receiver<LeadershipView>>,
    /// Where spans go, where they are asked for.
    traces: OnceLock<Traces>,
    gates: Mutex<BTreeMap<ElectionName, Gate>>,
    figures: Mutex<BTreeMap<ElectionName, StoreFigures>>,
    store: Mutex<StoreSeen>,
    schedule: Mutex<ScheduleSeen>,
    /// What the status page shows beside the status, when it was read.
    details: Mutex<Option<(Moment, Details)>>,
    /// Who was registered, when they were listed.
    replicas: Mutex<Option<(Moment, Vec<ReplicaRecord>)>>,
    /// When the status page was last asked for.
    looked_at: AtomicU64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Board {
    pub(super) fn new(metrics: Arc<Metrics>, replica: ReplicaDescription, elections: Vec<ElectionName>) -> Self {
        let now = clock::boottime();
        Self {
            metrics,
            replica,
            address: OnceLock::new(),
            elections,
            started_at: now,
            started_seconds: clock::wall().timestamp(),
            last_beat: AtomicU64::new(nanos(now)),
            draining: AtomicBool::new(false),
            in_flight: AtomicI64::new(0),
            leadership: OnceLock::new(),
            traces: OnceLock::new(),
            gates: Mutex::default(),
            figures: Mutex::default(),
            store: Mutex::default(),
            schedule: Mutex::default(),
            details: Mutex::default(),
            replicas: Mutex::default(),
            looked_at: AtomicU64::new(0),
        }
    }

    pub(super) fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// Spans are taken from now on.
    pub(super) fn takes_spans(&self, traces: Traces) {
        // There is one collector in a process.
        let _second = self.traces.set(traces);
    }

    pub(super) fn traces(&self) -> Option<&Traces> {
        self.traces.get()
    }

    /// The workers live.
    pub(super) fn beat(&self) {
        self.last_beat.store(nanos(clock::boottime()), Ordering::Relaxed);
    }

    pub(super) fn draining(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    /// The address that others are shown, once the HTTP port is open.
    pub(super) fn shown_at(&self, address: &str) {
        // There is one HTTP port in a process.
        let _second = self.address.set(address.to_owned());
    }

    /// Leadership has started.
    pub(super) fn leadership(&self, view: watch::Receiver<LeadershipView>) {
        // There is one leadership in a process.
        let _second = self.leadership.set(view);
    }

    /// A tenure begins behind this gate: whether it leads is asked of the gate from now on.
    pub(super) fn tenure_begins(&self, election: &ElectionName, gate: Gate) {
        lock(&self.figures).remove(election);
        lock(&self.gates).insert(election.clone(), gate);
    }

    pub(super) fn in_flight(&self, change: i64) {
        self.in_flight.fetch_add(change, Ordering::Relaxed);
    }

    /// The store's figures for an election; `None` where this replica leads it no more.
    pub(super) fn figures(&self, election: &ElectionName, figures: Option<StoreFigures>) {
        let mut all = lock(&self.figures);
        match figures {
            Some(figures) => all.insert(election.clone(), figures),
            None => all.remove(election),
        };
    }

    /// The store was checked: it said its time, or why it could not be led on.
    pub(super) fn store_checked(&self, verdict: Result<DateTime<Utc>, String>) {
        let mut seen = lock(&self.store);
        seen.checked_at = Some(clock::boottime());
        seen.verdict = Some(verdict.map(|time| learn(&mut seen, time)));
    }

    /// The store said its time.
    pub(super) fn store_time_read(&self, time: DateTime<Utc>) {
        learn(&mut lock(&self.store), time);
    }

    /// The store's status was read.
    pub(super) fn store_status(&self, status: StatusView) {
        lock(&self.store).status = Some((clock::boottime(), status));
    }

    /// More of the store was read, for the status page.
    pub(super) fn store_details(&self, details: Details) {
        *lock(&self.details) = Some((clock::boottime(), details));
    }

    /// The registered replicas were listed.
    pub(super) fn replicas(&self, replicas: Vec<ReplicaRecord>) {
        *lock(&self.replicas) = Some((clock::boottime(), replicas));
    }

    /// Whether somebody asked for the status page a moment ago.
    pub(super) fn is_looked_at(&self) -> bool {
        let last = Moment::after_boot(Duration::from_nanos(self.looked_at.load(Ordering::Relaxed)));
        clock::boottime().since(last) < LOOKED_AT_WITHIN
    }

    /// The store's time now, as far as it is known.
    pub(super) fn store_time(&self) -> Option<DateTime<Utc>> {
        let (at, time) = lock(&self.store).time?;
        TimeDelta::from_std(clock::boottime().since(at)).ok().and_then(|since| time.checked_add_signed(since))
    }

    /// Another schedule is in force.
    pub(super) fn schedule_in_force(&self, schedule: Arc<ScheduleInForce>) {
        self.metrics.know_jobs(schedule.jobs.iter().map(|job| &job.name));
        *lock(&self.schedule) = ScheduleSeen { in_force: schedule, refused: None };
    }

    /// The elections that the schedule in force names.
    pub(super) fn elections_in_force(&self) -> BTreeSet<ElectionName> {
        lock(&self.schedule).in_force.jobs.iter().map(|job| job.election.clone()).collect()
    }

    /// The schedule file is broken; the one in force goes on.
    pub(super) fn schedule_refused(&self, why: String) {
        lock(&self.schedule).refused = Some(why);
    }

    fn view(&self) -> Option<LeadershipView> {
        self.leadership.get().map(|view| view.borrow().clone())
    }

    /// The gate of the tenure that began last.
    pub(super) fn gate(&self, election: &ElectionName) -> Option<Gate> {
        lock(&self.gates).get(election).cloned()
    }

    fn observe(&self) -> Observation {
        let view = self.view();
        let schedule_fingerprint = lock(&self.schedule).in_force.fingerprint.clone();
        let (store_up, store_skew_ms, halted) = {
            let seen = lock(&self.store);
            let halted: Vec<ElectionName> = seen.status.iter().flat_map(|(_, status)| halted_in(status)).collect();
            (matches!(seen.verdict, Some(Ok(()))), seen.skew.num_milliseconds(), halted)
        };
        let figures = lock(&self.figures).clone();
        let now = clock::boottime();
        let election = |name: &ElectionName| {
            let gate = self.gate(name);
            let figures = figures.get(name).cloned();
            let is_halted = figures.as_ref().map_or_else(|| halted.contains(name), |figures| figures.halted);
            ElectionObservation {
                election: name.clone(),
                term: view.as_ref().and_then(|view| view.election(name)).map_or(Term::NONE, |seen| seen.term),
                leading: gate.as_ref().is_some_and(Gate::leads_now),
                lease_remaining: gate.as_ref().map_or(Duration::ZERO, Gate::remaining),
                halted: is_halted,
                figures,
            }
        };
        Observation {
            elections: self.elections.iter().map(election).collect(),
            session_state: view.as_ref().map_or(SessionState::None, |view| view.session).as_str(),
            session_remaining: view.as_ref().map_or(Duration::ZERO, |view| view.remaining(now)),
            coordinator_up: view.as_ref().is_some_and(|view| view.coordinator_up == Some(true)),
            coordinator_members: view.as_ref().map_or(0, |view| view.members.reachable),
            store_up,
            store_skew_ms,
            in_flight_units: u64::try_from(self.in_flight.load(Ordering::Relaxed)).unwrap_or(0),
            schedule_fingerprint,
            started_seconds: self.started_seconds,
        }
    }
}

fn nanos(moment: Moment) -> u64 {
    u64::try_from(moment.since_boot().as_nanos()).unwrap_or(u64::MAX)
}

fn learn(seen: &mut StoreSeen, time: DateTime<Utc>) {
    seen.time = Some((clock::boottime(), time));
    seen.skew = clock::wall() - time;
}

fn halted_in(status: &StatusView) -> impl Iterator<Item = ElectionName> + '_ {
    status.elections.iter().filter(|election| election.fence.halt.is_some()).map(|election| election.election.clone())
}

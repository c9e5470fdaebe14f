//! The board: what is known of this replica, put up by whoever knows it, read by the HTTP port at any moment.
//!
//! Everything is in memory and behind short locks, so that health and metrics are answered also when the store hangs. What
//! came from the store carries the moment at which it was read.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::clock;
use crate::domain::job::JobDefinition;
use crate::domain::{ElectionName, Moment, Term};
use crate::leadership::{
    ElectionView, Gate, LeadershipView, ReplicaDescription, ReplicaRecord, SessionState, Suspicion,
};
use crate::schedule::Schedule;
use crate::store::{StatusView, StoreFigures};
use crate::telemetry::{ElectionObservation, Metrics, Observation};
use crate::tenure::ScheduleInForce;
use crate::web::{Aged, Details, ElectionLine, NextTick, Page, Picture};

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
    last_beat: AtomicU64,
    draining: AtomicBool,
    in_flight: AtomicI64,
    leadership: OnceLock<watch::Receiver<LeadershipView>>,
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
            last_beat: AtomicU64::new(nanos(now)),
            draining: AtomicBool::new(false),
            in_flight: AtomicI64::new(0),
            leadership: OnceLock::new(),
            gates: Mutex::default(),
            figures: Mutex::default(),
            store: Mutex::default(),
            schedule: Mutex::default(),
            details: Mutex::default(),
            replicas: Mutex::default(),
            looked_at: AtomicU64::new(0),
        }
    }

    pub(super) fn metrics(&self) -> &Metrics {
        &self.metrics
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

    /// The schedule file is broken; the one in force goes on.
    pub(super) fn schedule_refused(&self, why: String) {
        lock(&self.schedule).refused = Some(why);
    }

    fn view(&self) -> Option<LeadershipView> {
        self.leadership.get().map(|view| view.borrow().clone())
    }

    fn gate(&self, election: &ElectionName) -> Option<Gate> {
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

impl Picture for Board {
    fn alive(&self) -> Result<(), String> {
        let last = Moment::after_boot(Duration::from_nanos(self.last_beat.load(Ordering::Relaxed)));
        let silent = clock::boottime().since(last);
        if silent <= BEAT_WITHIN {
            Ok(())
        } else {
            Err(format!("the workers have not beaten for {silent:?}; expected once a second"))
        }
    }

    fn not_ready(&self) -> Vec<String> {
        let mut reasons = Vec::new();
        if self.draining.load(Ordering::Relaxed) {
            reasons.push("draining".to_owned());
        }
        match &lock(&self.store).verdict {
            Some(Ok(())) => {}
            Some(Err(why)) => reasons.push(format!("store: {why}")),
            None => reasons.push("store: not connected yet".to_owned()),
        }
        match self.view() {
            None => reasons.push("coordinator: not asked yet".to_owned()),
            Some(view) => match (view.coordinator_up, view.session) {
                (Some(true), SessionState::Live | SessionState::Suspect) => reasons.extend(ineligible(&view)),
                (Some(false), _) => reasons.push("coordinator: does not answer".to_owned()),
                (_, session) => reasons.push(format!("coordinator: no session ({})", session.as_str())),
            },
        }
        reasons
    }

    fn metrics(&self) -> String {
        self.metrics.render(|| self.observe())
    }

    fn status(&self) -> Value {
        let now = clock::boottime();
        let elections: Vec<Value> = match self.view() {
            Some(view) => view.elections.iter().map(|seen| self.election_json(seen, now)).collect(),
            None => Vec::new(),
        };
        let session = self.view().map(|view| {
            json!({
                "state": view.session.as_str(),
                "suspicion": view.suspicion.map(Suspicion::as_str),
                "remaining_ms": millis(view.remaining(now)),
                "coordinator_up": view.coordinator_up,
                "members_reachable": view.members.reachable,
                "members_total": view.members.total,
                "replicas": view.replicas,
                "cordoned": view.cordoned,
            })
        });
        json!({
            "replica": self.replica.id,
            "host": self.replica.host,
            "address": self.address.get().unwrap_or(&self.replica.address),
            "version": self.replica.version,
            "up_seconds": now.since(self.started_at).as_secs(),
            "not_ready": self.not_ready(),
            "draining": self.draining.load(Ordering::Relaxed),
            "session": session,
            "elections": elections,
            "schedule": self.schedule_json(),
            "store": self.store_json(now),
        })
    }

    fn page(&self) -> Page {
        let now = clock::boottime();
        self.looked_at.store(nanos(now), Ordering::Relaxed);
        let (schedule, schedule_refused) = {
            let seen = lock(&self.schedule);
            (Arc::clone(&seen.in_force), seen.refused.clone())
        };
        let elections = self.view().map(|view| view.elections).unwrap_or_default();
        Page {
            replica: self.replica.id.to_string(),
            host: self.replica.host.clone(),
            version: self.replica.version.clone(),
            not_ready: self.not_ready(),
            elections: elections.iter().map(|seen| self.election_line(seen)).collect(),
            replicas: lock(&self.replicas).clone().map(|seen| aged(seen, now)),
            fingerprint: schedule.fingerprint.clone(),
            schedule_refused,
            next: schedule
                .jobs
                .iter()
                .map(|job| NextTick { job: job.name.to_string(), at: self.next_tick(job) })
                .collect(),
            status: lock(&self.store).status.clone().map(|seen| aged(seen, now)),
            details: lock(&self.details).clone().map(|seen| aged(seen, now)),
        }
    }
}

fn aged<T>((at, value): (Moment, T), now: Moment) -> Aged<T> {
    Aged { value, age: now.since(at) }
}

/// The status as the port shows it: a definition names merchants and limits, which are not for it.
fn without_definitions(status: &StatusView) -> Value {
    let mut value = json!(status);
    for job in value.get_mut("jobs").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(job) = job.as_object_mut() {
            job.remove("definition");
        }
    }
    value
}

fn ineligible(view: &LeadershipView) -> impl Iterator<Item = String> + '_ {
    view.elections
        .iter()
        .filter_map(|seen| seen.ineligible.as_ref().map(|why| format!("may not lead {}: {why}", seen.election)))
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl Board {
    fn election_json(&self, seen: &ElectionView, now: Moment) -> Value {
        let gate = self.gate(&seen.election);
        json!({
            "election": seen.election,
            "leading": gate.as_ref().is_some_and(Gate::leads_now),
            "lease_remaining_ms": gate.as_ref().filter(|gate| gate.leads_now()).map(|gate| millis(gate.remaining())),
            "phase": seen.phase.as_str(),
            "phase_for_ms": millis(now.since(seen.since)),
            "term": seen.term,
            "tenure": seen.claim.as_ref().map(|claim| claim.tenure_id),
            "ineligible": seen.ineligible,
            "leader": seen.leader,
        })
    }

    fn election_line(&self, seen: &ElectionView) -> ElectionLine {
        let gate = self.gate(&seen.election).filter(Gate::leads_now);
        ElectionLine {
            election: seen.election.to_string(),
            leads_for: gate.map(|gate| gate.remaining()),
            phase: seen.phase.as_str(),
            leader: seen.leader.as_ref().map(|leader| (leader.leader_id.to_string(), leader.term.get())),
        }
    }

    fn next_tick(&self, job: &JobDefinition) -> Option<DateTime<Utc>> {
        Some(Schedule::new(&job.timing).ok()?.next_after(self.store_time()?)?.nominal)
    }

    fn schedule_json(&self) -> Value {
        let (schedule, refused) = {
            let seen = lock(&self.schedule);
            (Arc::clone(&seen.in_force), seen.refused.clone())
        };
        let jobs: Vec<Value> = schedule
            .jobs
            .iter()
            .map(|job| json!({ "job": job.name, "election": job.election, "next_tick": self.next_tick(job) }))
            .collect();
        json!({ "fingerprint": schedule.fingerprint, "jobs": jobs, "refused": refused })
    }

    fn store_json(&self, now: Moment) -> Value {
        let seen = lock(&self.store);
        let (up, why) = match &seen.verdict {
            Some(Ok(())) => (true, None),
            Some(Err(why)) => (false, Some(why.clone())),
            None => (false, Some("not connected yet".to_owned())),
        };
        json!({
            "up": up,
            "why": why,
            "checked_ms_ago": seen.checked_at.map(|at| millis(now.since(at))),
            "clock_skew_ms": seen.skew.num_milliseconds(),
            "status_age_ms": seen.status.as_ref().map(|(at, _)| millis(now.since(*at))),
            "status": seen.status.as_ref().map(|(_, status)| without_definitions(status)),
        })
    }
}

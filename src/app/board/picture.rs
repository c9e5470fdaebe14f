//! What the HTTP port shows of the board.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::{BEAT_WITHIN, Board, lock, nanos};
use crate::clock;
use crate::domain::Moment;
use crate::domain::job::JobDefinition;
use crate::leadership::{ElectionView, Gate, LeadershipView, SessionState, Suspicion};
use crate::schedule::Schedule;
use crate::store::StatusView;
use crate::web::{Aged, ElectionLine, NextTick, Page, Picture, why_of};

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
                (Some(false), _) => reasons.push(match &view.trouble {
                    Some(why) => format!("coordinator: does not answer: {why}"),
                    None => "coordinator: does not answer".to_owned(),
                }),
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
                "coordinator_trouble": view.trouble,
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
            made_at: clock::wall(),
            replica: self.replica.id.to_string(),
            host: self.replica.host.clone(),
            version: self.replica.version.clone(),
            not_ready: self.not_ready(),
            elections: elections.iter().map(|seen| self.election_line(seen, now)).collect(),
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

/// The status as the port shows it: a definition names merchants and limits, and an error perhaps too, which are not for it.
fn for_the_port(status: &StatusView) -> Value {
    let mut value = json!(status);
    let runs = value.get_mut("runs").and_then(Value::as_array_mut).into_iter().flatten();
    for (run, shown) in status.runs.iter().zip(runs) {
        shown["why"] = json!(why_of(run));
    }
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
            "leader_age_ms": seen.seen_at.map(|at| millis(now.since(at))),
        })
    }

    fn election_line(&self, seen: &ElectionView, now: Moment) -> ElectionLine {
        let gate = self.gate(&seen.election).filter(Gate::leads_now);
        let leader = seen.leader.as_ref().map(|leader| (leader.leader_id.to_string(), leader.term.get()));
        ElectionLine {
            election: seen.election.to_string(),
            leads_for: gate.map(|gate| gate.remaining()),
            phase: seen.phase.as_str(),
            leader: seen.seen_at.map(|at| Aged { value: leader, age: now.since(at) }),
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
            "status": seen.status.as_ref().map(|(_, status)| for_the_port(status)),
        })
    }
}

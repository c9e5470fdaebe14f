//! `bursar status`: who leads, who is there, what runs, what is next; in one look, or again and again.

use std::time::Duration;

use chrono::{DateTime, Utc};
use clap::Args;
use serde::Serialize;
use serde_json::{Value, json};

use super::context::Context;
use super::error::{CommandError, Exit};
use super::output::{Output, dash, or_dash, short, time, time_or};
use super::{requests, runs};
use crate::app;
use crate::config::Config;
use crate::domain::ElectionName;
use crate::domain::job::JobDefinition;
use crate::leadership::{LeaderRecord, ReplicaRecord};
use crate::schedule::{Schedule, Tick};
use crate::store::{Cordon, ElectionStatus, JobStatus, StatusView, Store, StoreError, WaitingRequest};

/// How long the coordinator is waited for; without it the rest is shown all the same.
const COORDINATOR_WITHIN: Duration = Duration::from_secs(3);

/// Who leads, which replicas are there, what runs and what is next.
///
/// Terms, jobs and runs come from the store; who leads now and which replicas are there come from the coordinator. Where
/// that one is away, the rest is shown and it is said. Requests that wait for a leader, and cordons,
/// are listed while there are any.
#[derive(Debug, Args)]
pub(super) struct StatusArgs {
    /// Look again and again until Ctrl-C: redrawn on a terminal, else one answer below the other (with --json a line each).
    #[arg(long)]
    watch: bool,
    /// Seconds between two looks, 1 to 3600.
    #[arg(long, value_name = "SECONDS", default_value_t = 2, requires = "watch")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=3600))]
    every: u64,
}

/// What the coordinator says of leaders and replicas.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Seen {
    Reached { leaders: Vec<LeaderRecord>, replicas: Vec<ReplicaRecord> },
    Away { away: String },
}

impl StatusArgs {
    pub(super) async fn execute(self, context: &Context) -> Result<Exit, CommandError> {
        let (config, store) = context.open().await?;
        let watched = if self.watch {
            tokio::select! {
                ended = watch(context.output(), &config, &*store, Duration::from_secs(self.every)) => ended,
                asked = tokio::signal::ctrl_c() => asked.map_err(|source| CommandError::Io { what: "signals".to_owned(), source }),
            }
        } else {
            match gather(&config, &*store).await {
                Ok(found) if context.output().is_json() => context.output().json(&as_json(&found)?),
                Ok(found) => show(context.output(), &found),
                Err(error) => Err(error.into()),
            }
        };
        store.close().await;
        watched.map(|()| Exit::Done)
    }
}

/// All that is shown.
struct Found {
    status: StatusView,
    waiting: Vec<WaitingRequest>,
    seen: Seen,
}

async fn gather(config: &Config, store: &dyn Store) -> Result<Found, StoreError> {
    let status = store.status().await?;
    let waiting = store.waiting_requests().await?;
    let names: Vec<ElectionName> = status.elections.iter().map(|election| election.election.clone()).collect();
    let seen = look(config, names).await;
    Ok(Found { status, waiting, seen })
}

/// Looks again and again. A store that is away is said and looked for again: whoever watches wants to see it come back.
async fn watch(output: Output, config: &Config, store: &dyn Store, every: Duration) -> Result<(), CommandError> {
    loop {
        let found = gather(config, store).await;
        output.redraw()?;
        match found {
            Ok(found) if output.is_json() => output.json_line(&as_json(&found)?)?,
            Ok(found) => show(output, &found)?,
            Err(error) if output.is_json() => output.json_line(&json!({ "error": error.to_string() }))?,
            Err(error) => output.line(&format!("the store does not answer: {error}"))?,
        }
        tokio::time::sleep(every).await;
    }
}

pub(super) async fn look(config: &Config, mut elections: Vec<ElectionName>) -> Seen {
    if let Some(file) = app::lease_file_to_be_made(config) {
        // Asking would make it, as whoever asks; the replicas may run as another user.
        return Seen::Away { away: format!("no replica has made {} yet", file.display()) };
    }
    let coordinator = app::coordinator(config);
    let looking = async {
        let replicas = coordinator.list_replicas().await.map_err(|error| error.to_string())?;
        // Also elections that nobody has won yet.
        elections.extend(replicas.iter().flat_map(|replica| replica.eligible.clone()));
        elections.sort();
        elections.dedup();
        let mut leaders = Vec::new();
        for election in &elections {
            let state = coordinator.read_election(election).await.map_err(|error| error.to_string())?;
            leaders.extend(state.leader.and_then(|leader| leader.record));
        }
        Ok(Seen::Reached { leaders, replicas })
    };
    match tokio::time::timeout(COORDINATOR_WITHIN, looking).await {
        Ok(Ok(seen)) => seen,
        Ok(Err(away)) => Seen::Away { away },
        Err(_elapsed) => Seen::Away { away: format!("no answer within {COORDINATOR_WITHIN:?}") },
    }
}

/// The next tick of a job, by the definition that is in force; `None` also where it cannot be read.
pub(super) fn next_tick(job: &JobStatus, now: DateTime<Utc>) -> Option<Tick> {
    let definition: JobDefinition = serde_json::from_value(job.definition.clone()).ok()?;
    Schedule::new(&definition.timing).ok()?.next_after(now)
}

/// When it is, and where a calendar has moved it, when it is due.
fn next(tick: Option<Tick>) -> String {
    match tick {
        Some(tick) if tick.due_at != tick.nominal => format!("{}, due {}", time(tick.nominal), time(tick.due_at)),
        Some(tick) => time(tick.nominal),
        None => dash(),
    }
}

fn as_json(found: &Found) -> Result<Value, CommandError> {
    let Found { status, waiting, seen } = found;
    let internal = |error: serde_json::Error| CommandError::Internal(error.into());
    let mut value = serde_json::to_value(status).map_err(internal)?;
    let jobs = value.get_mut("jobs").and_then(Value::as_array_mut).into_iter().flatten();
    for (job, of) in jobs.zip(&status.jobs) {
        if let Some(job) = job.as_object_mut() {
            let next = next_tick(of, status.now);
            job.insert("next_tick".to_owned(), json!(next.map(|tick| tick.nominal)));
            job.insert("next_due".to_owned(), json!(next.map(|tick| tick.due_at)));
        }
    }
    if let Some(value) = value.as_object_mut() {
        value.insert("coordinator".to_owned(), serde_json::to_value(seen).map_err(internal)?);
        value.insert("requests".to_owned(), serde_json::to_value(waiting).map_err(internal)?);
    }
    Ok(value)
}

fn show(output: Output, found: &Found) -> Result<(), CommandError> {
    let Found { status, waiting, seen } = found;
    let deployment =
        status.deployment_id.map_or_else(|| "not bound to a coordinator yet".to_owned(), |id| id.to_string());
    output.line(&format!("{}, deployment {deployment}\n", time(status.now)))?;
    show_elections(output, status, seen)?;
    show_replicas(output, &status.cordons, seen)?;
    let job = |job: &JobStatus| {
        let last = job.last_state.map_or_else(dash, |state| state.as_str().to_owned());
        let coming = match &job.paused {
            Some(reason) => format!("paused: {reason}"),
            None => next(next_tick(job, status.now)),
        };
        vec![
            job.job.to_string(),
            job.election.to_string(),
            job.handler.clone(),
            time_or(job.last_tick),
            last,
            coming,
            short(&job.fingerprint),
        ]
    };
    let rows: Vec<Vec<String>> = status.jobs.iter().map(job).collect();
    let columns = ["job", "election", "handler", "last tick", "its run", "next tick", "definition"];
    output.table("\nJOBS", "none yet: a leader brings in those of its schedule", &columns, &rows)?;
    runs::list(output, "\nRUNS", &status.runs)?;
    if !status.cordons.is_empty() {
        show_cordons(output, &status.cordons)?;
    }
    if !waiting.is_empty() {
        requests::table(
            output,
            "\nREQUESTS THAT WAIT FOR A LEADER (`bursar requests withdraw ID` takes one back)",
            waiting,
        )?;
    }
    output.line(&format!("\nfencing rejects on record: {}", status.fencing_rejects))
}

fn show_elections(output: Output, status: &StatusView, seen: &Seen) -> Result<(), CommandError> {
    let (leaders, known) = match seen {
        Seen::Reached { leaders, .. } => (leaders.as_slice(), true),
        Seen::Away { .. } => (&[][..], false),
    };
    let mut rows = Vec::new();
    for election in &status.elections {
        let leads = leaders.iter().find(|leader| leader.election == election.election);
        rows.push(vec![
            election.election.to_string(),
            leader(election, leads, known),
            election.fence.holder.term.to_string(),
            time_or(election.accepted_at),
            halt(election),
        ]);
    }
    let fresh = leaders.iter().filter(|leader| status.elections.iter().all(|of| of.election != leader.election));
    for leader in fresh {
        let won = time_or(leader.won_at);
        rows.push(vec![
            leader.election.to_string(),
            format!("{} (not accepted yet)", leader.leader_id),
            leader.term.to_string(),
            won,
            dash(),
        ]);
    }
    output.table("ELECTIONS", "nobody has led yet", &["election", "leader", "term", "since", "halted"], &rows)
}

/// Who leads by the coordinator; where that one is away, whom the store accepted last.
fn leader(election: &ElectionStatus, leads: Option<&LeaderRecord>, known: bool) -> String {
    match (leads, known) {
        (Some(leader), _) if leader.tenure_id == election.fence.holder.tenure_id => leader.leader_id.to_string(),
        (Some(leader), _) => format!("{} (term {} not accepted yet)", leader.leader_id, leader.term),
        (None, true) => match &election.ended {
            Some(why) => format!("nobody (the last one ended: {why})"),
            None => "nobody".to_owned(),
        },
        (None, false) => format!("{} accepted last", or_dash(election.leader.as_deref())),
    }
}

fn halt(election: &ElectionStatus) -> String {
    election
        .fence
        .halt
        .as_ref()
        .map_or_else(dash, |halt| format!("HALTED since {} by {}: {}", time(halt.since), halt.by, halt.reason))
}

fn show_replicas(output: Output, cordons: &[Cordon], seen: &Seen) -> Result<(), CommandError> {
    let replicas = match seen {
        Seen::Reached { replicas, .. } => replicas,
        Seen::Away { away } => return output.line(&format!("\nREPLICAS\nthe coordinator is away: {away}")),
    };
    let row = |replica: &ReplicaRecord| {
        let eligible: Vec<&str> = replica.eligible.iter().map(ElectionName::as_str).collect();
        let is_cordoned = cordons.iter().any(|cordon| cordon.replica == replica.replica_id.as_str());
        vec![
            replica.replica_id.to_string(),
            replica.address.clone(),
            replica.version.clone(),
            match (is_cordoned, eligible.is_empty()) {
                (true, _) => "nothing: cordoned".to_owned(),
                (false, true) => "nothing now".to_owned(),
                (false, false) => eligible.join(", "),
            },
            short(&replica.schedule_fingerprint),
        ]
    };
    let rows: Vec<Vec<String>> = replicas.iter().map(row).collect();
    output.table("\nREPLICAS", "none is registered", &["replica", "address", "version", "may lead", "schedule"], &rows)
}

/// All of them: one that a mistyped id, or an id that will not come back, was given would be seen nowhere else.
fn show_cordons(output: Output, cordons: &[Cordon]) -> Result<(), CommandError> {
    let row = |cordon: &Cordon| {
        vec![cordon.replica.clone(), time(cordon.at), cordon.by.clone(), or_dash(cordon.reason.as_deref())]
    };
    let rows: Vec<Vec<String>> = cordons.iter().map(row).collect();
    let title = "\nCORDONED (`bursar uncordon REPLICA --reason R` lets one lead again)";
    output.table(title, "none", &["replica", "since", "by", "why"], &rows)
}

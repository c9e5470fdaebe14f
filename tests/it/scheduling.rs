//! The schedule as those who edit and watch it meet it: files that change under running replicas, jobs that are paused, what
//! `plan` says, and ticks beside runs that take their time. On files of SQLite, for nothing here depends on the store, but for
//! `clocks`, whose store is a PostgreSQL with a clock of its own.

mod clocks;
mod files;
mod overlaps;
mod pausing;
mod plans;

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;

use crate::support::{Cluster, EVERY_SECOND, Setup, eventually};

/// A start on a busy machine.
const READY: Duration = Duration::from_secs(30);
/// Some ticks of a second, on a busy machine.
const SOON: Duration = Duration::from_mins(1);

/// A job of the test build's handler; `more` are further keys.
fn job(name: &str, cron: &str, more: &str, probe: &str) -> String {
    format!(
        "[[job]]\nname = \"{name}\"\ncron = \"{cron}\"\nhandler = \"probe\"\n{more}\n[job.probe]\nunits = 1\n{probe}\n"
    )
}

/// One that fires every second.
fn ticking() -> String {
    job("ticking", EVERY_SECOND, "", "")
}

async fn led(schedule: &str) -> Cluster {
    let cluster = Setup::new(1, schedule).embedded().steady().start().await;
    cluster.wait_leader(READY).await;
    cluster
}

/// A run as `runs list` shows it.
#[derive(Debug, Clone)]
struct Run {
    tick: DateTime<Utc>,
    state: String,
    why: Option<String>,
    finished_at: Option<DateTime<Utc>>,
}

/// The runs that ticks of a job opened or did not, in the order of ticks; never two of one tick.
fn runs(cluster: &Cluster, job: &str) -> Vec<Run> {
    let listed = cluster.command(&["runs", "list", "--job", job, "--limit", "10000", "--json"]).ok().json();
    let time = |value: &Value| value.as_str().and_then(|text| text.parse::<DateTime<Utc>>().ok());
    let mut found = BTreeMap::new();
    for run in listed.as_array().expect("a list").iter().filter(|run| run["kind"] == "tick") {
        let tick = time(&run["tick"]).expect("a time");
        let read = Run {
            tick,
            state: run["state"].as_str().expect("a state").to_owned(),
            why: run["why"].as_str().map(ToOwned::to_owned),
            finished_at: time(&run["finished_at"]),
        };
        assert!(found.insert(tick, read).is_none(), "two runs of {tick}: {listed}");
    }
    found.into_values().collect()
}

/// Sees that no tick between the first and the last is missing.
fn assert_without_gap(runs: &[Run], every: TimeDelta) {
    for pair in runs.windows(2) {
        assert_eq!(pair[1].tick - pair[0].tick, every, "a tick is missing after {}", pair[0].tick);
    }
}

/// Waits until a job has so many runs in a state.
async fn wait_runs(cluster: &Cluster, job: &str, state: &str, least: usize) -> Vec<Run> {
    eventually(SOON, &format!("{least} runs of {job} are {state}"), async || {
        let found = runs(cluster, job);
        (found.iter().filter(|run| run.state == state).count() >= least).then_some(found)
    })
    .await
}

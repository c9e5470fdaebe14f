//! What operators see and do while replicas work: health, metrics, planned ends, the kill switch, and starts that go wrong.

mod ending;
mod halting;
mod handing;
mod rolling;
mod seen;
mod starting;

use std::time::Duration;

use serde_json::Value;

use crate::support::{Cluster, Replica, eventually};

/// A start on a busy machine.
const READY: Duration = Duration::from_secs(30);
/// A lease that lapses, and what follows, on a busy machine.
const TAKEOVER: Duration = Duration::from_secs(30);
/// A run of some seconds, on a busy machine.
const SETTLED: Duration = Duration::from_secs(90);

/// Sees that it lives, whatever it may not do.
async fn assert_lives(replica: &Replica) {
    let (status, text) = eventually(READY, "it answers", async || replica.livez().await).await;
    assert_eq!(status, 200, "{text}");
}

/// Waits until so many replicas are registered as ones that may lead: a moment after each is ready.
async fn wait_heirs(cluster: &Cluster, count: usize) {
    eventually(READY, "all may lead", async || {
        let status: Value = serde_json::from_str(&cluster.command(&["status", "--json"]).stdout).ok()?;
        let replicas = status["coordinator"]["replicas"].as_array()?;
        let able = replicas.iter().filter(|replica| replica["eligible"].as_array().is_some_and(|e| !e.is_empty()));
        (able.count() == count).then_some(())
    })
    .await;
}

//! What operators see and do while replicas work: health, metrics, planned ends, the kill switch, and starts that go wrong.

mod ending;
mod halting;
mod handing;
mod seen;
mod starting;

use std::time::Duration;

use crate::support::{Replica, eventually};

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

//! What is promised in time, measured: these tests run alone, one by one, and their bounds are the promised ones.
//!
//! Each prints what it measured, past the harness, so that a passing run shows it too.

mod busy;
mod halting;
mod handover;
mod stopped;
mod takeover;

use std::time::Duration;

use crate::support::{Cluster, EVERY_SECOND, Job, Replica, measured};

/// A start.
const READY: Duration = Duration::from_secs(30);
/// Far more than any bound: a test that waits in vain says so then.
const IN_VAIN: Duration = Duration::from_secs(30);

/// A job that settles a unit each second: someone is at work.
fn each_second() -> Job {
    Job::probe("each-second", 1).cron(EVERY_SECOND)
}

/// A job that does nothing unless it is triggered.
fn idle() -> Job {
    Job::probe("idle", 1)
}

/// Waits until all replicas are ready and one leads; gives its index.
async fn settled_cluster(cluster: &Cluster) -> usize {
    for replica in cluster.replicas() {
        replica.wait_ready(READY).await;
    }
    cluster.wait_leader(READY).await
}

/// How often a replica has taken over, and the sum of the seconds that it took from the last leader's end seen to the first
/// work.
async fn takeovers(replica: &Replica) -> (f64, f64) {
    let metrics = replica.metrics().await.expect("it answers");
    let of = |name: &str| metrics.value(name, &[]).expect("the series exists from the start");
    (of("bursar_takeover_seconds_count"), of("bursar_takeover_seconds_sum"))
}

/// A distribution, in milliseconds.
struct Times {
    what: String,
    times: Vec<Duration>,
}

impl Times {
    fn of(what: &str) -> Self {
        Self { what: what.to_owned(), times: Vec::new() }
    }

    fn push(&mut self, time: Duration) {
        self.times.push(time);
    }

    /// Prints it, past the harness.
    fn print(&mut self) {
        self.times.sort();
        let at = |percent: usize| self.times[(self.times.len() * percent).div_ceil(100).clamp(1, self.times.len()) - 1];
        let ms = |time: Duration| format!("{:.1}", time.as_secs_f64() * 1000.0);
        let line = format!(
            "{}: {} times, ms: min {}, median {}, p95 {}, max {}",
            self.what,
            self.times.len(),
            ms(at(0)),
            ms(at(50)),
            ms(at(95)),
            ms(at(100))
        );
        measured(&line);
    }

    /// Prints it and sees that none took longer.
    ///
    /// # Panics
    /// When one did.
    fn assert_at_most(mut self, bound: Duration) {
        self.print();
        let worst = self.times.last().expect("something was measured");
        assert!(*worst <= bound, "{}: {worst:?}, promised are {bound:?}; all: {:?}", self.what, self.times);
    }
}

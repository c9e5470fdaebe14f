//! What the session's thread is told once.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::domain::{ElectionName, ReplicaId};
use crate::leadership::machine;
use crate::leadership::reason::ExitReason;

/// The exit code of a process that ends itself because half of it does not live: `EX_SOFTWARE` of sysexits.
pub const EXIT_CODE: i32 = 70;

/// How long the line that says why may take.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Ends the process.
pub type ExitHook = Arc<dyn Fn(ExitReason) + Send + Sync>;

/// The store's time as this replica knows it, for showing; `None` while it does not.
pub type StoreTime = Arc<dyn Fn() -> Option<DateTime<Utc>> + Send + Sync>;

/// What others are shown of this replica.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicaDescription {
    /// New at every start.
    pub id: ReplicaId,
    /// Host name.
    pub host: String,
    /// Where its HTTP port is; empty where unknown.
    pub address: String,
    /// The version of the program.
    pub version: String,
    /// The schedule that it runs. [`Report::ScheduleFingerprint`](machine::Report::ScheduleFingerprint) changes it.
    pub schedule_fingerprint: String,
}

/// What the session's thread is told once.
#[derive(Clone)]
pub struct LeadershipSettings {
    /// This replica.
    pub replica: ReplicaDescription,
    /// The elections to stand for.
    pub elections: Vec<ElectionName>,
    /// The lease's TTL: `coordinator.lease_ttl`.
    pub ttl: Duration,
    /// `coordinator.teardown_budget`.
    pub teardown_budget: Duration,
    /// `coordinator.drain`.
    pub drain: Duration,
    /// What ends the process. [`exit_process`] unless a test says otherwise.
    pub exit: ExitHook,
    /// The store's time, for `won_at` in records. Nothing unless set.
    pub store_time: StoreTime,
}

impl LeadershipSettings {
    /// Settings with the process's own exit, and no store's time.
    #[must_use]
    pub fn new(
        replica: ReplicaDescription,
        elections: Vec<ElectionName>,
        ttl: Duration,
        teardown_budget: Duration,
        drain: Duration,
    ) -> Self {
        Self {
            replica,
            elections,
            ttl,
            teardown_budget,
            drain,
            exit: Arc::new(exit_process),
            store_time: Arc::new(|| None),
        }
    }

    pub(super) fn machine(&self) -> machine::Settings {
        machine::Settings {
            me: self.replica.id.clone(),
            elections: self.elections.clone(),
            ttl: self.ttl,
            teardown_budget: self.teardown_budget,
            drain: self.drain,
        }
    }
}

/// Says why, and ends the process with exit code 70, running nothing more of it. The saying is another thread's, and is waited
/// for for a moment only: no log may keep a process alive that has to end.
pub fn exit_process(reason: ExitReason) {
    let (said, heard) = mpsc::channel();
    let saying = move || {
        let (reason, code) = (reason.as_str(), EXIT_CODE);
        tracing::error!(reason, code, "the process ends itself: half a replica is worse than none");
        // Nobody waits for it any more.
        let _late = said.send(());
    };
    if std::thread::Builder::new().name("last-words".to_owned()).spawn(saying).is_ok() {
        let _said = heard.recv_timeout(LAST_WORDS);
    }
    std::process::exit(EXIT_CODE);
}

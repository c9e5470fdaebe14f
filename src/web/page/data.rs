//! What the page shows, as it was known when it was asked for.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::leadership::ReplicaRecord;
use crate::store::{HistoryView, PayoutView, ReceiverView, StatusView, UnitView};

/// Something that was read a while ago.
#[derive(Debug, Clone)]
pub struct Aged<T> {
    /// It.
    pub value: T,
    /// How long ago.
    pub age: Duration,
}

/// What the page shows of the store beside its status. Bounded lists, newest first.
#[derive(Debug, Clone)]
pub struct Details {
    /// Terms, refusals and acts.
    pub history: HistoryView,
    /// Units set aside.
    pub set_aside: Vec<UnitView>,
    /// Payouts that are held, or whose outcome is unknown.
    pub in_doubt: Vec<PayoutView>,
    /// Receivers that are stopped.
    pub receivers: Vec<ReceiverView>,
}

/// One election, as this replica stands in it.
#[derive(Debug, Clone)]
pub struct ElectionLine {
    /// Its name.
    pub election: String,
    /// Whether this replica leads it now, and how long its lease still runs.
    pub leads_for: Option<Duration>,
    /// Where this replica stands.
    pub phase: &'static str,
    /// Who leads by the coordinator, with the term; nobody, perhaps. None: it was not asked yet.
    pub leader: Option<Aged<Option<(String, i64)>>>,
}

/// A job of the schedule in force, with its next tick.
#[derive(Debug, Clone)]
pub struct NextTick {
    /// The job.
    pub job: String,
    /// Nominal, UTC.
    pub at: Option<DateTime<Utc>>,
}

/// The page's content.
#[derive(Debug, Clone)]
pub struct Page {
    /// When the page was made, by this replica's clock.
    pub made_at: DateTime<Utc>,
    /// This replica.
    pub replica: String,
    /// Its host.
    pub host: String,
    /// Its version.
    pub version: String,
    /// Why it could not lead; empty where it could.
    pub not_ready: Vec<String>,
    /// Elections.
    pub elections: Vec<ElectionLine>,
    /// Replicas that are registered.
    pub replicas: Option<Aged<Vec<ReplicaRecord>>>,
    /// The schedule in force.
    pub fingerprint: String,
    /// What is wrong with the schedule file as it is now.
    pub schedule_refused: Option<String>,
    /// Next ticks.
    pub next: Vec<NextTick>,
    /// What the store says.
    pub status: Option<Aged<StatusView>>,
    /// And more of it.
    pub details: Option<Aged<Details>>,
}

#[cfg(test)]
impl Page {
    /// A page of a replica that has just started.
    pub(in crate::web) fn nothing_known(replica: &str) -> Self {
        Self {
            made_at: DateTime::UNIX_EPOCH,
            replica: replica.to_owned(),
            host: "host".to_owned(),
            version: "0".to_owned(),
            not_ready: vec!["store: not connected yet".to_owned()],
            elections: Vec::new(),
            replicas: None,
            fingerprint: String::new(),
            schedule_refused: None,
            next: Vec::new(),
            status: None,
            details: None,
        }
    }
}

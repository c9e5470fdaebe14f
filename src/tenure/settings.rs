//! What tenures are made of and bounded by.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, watch};

use super::{Reports, TenureObserver};
use crate::domain::job::JobDefinition;
use crate::settlement::http::Receivers;
use crate::store::{Leader, Store, TenureLimits};

/// The schedule that counts now: validated, complete, of all elections.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScheduleInForce {
    /// Its jobs.
    pub jobs: Vec<JobDefinition>,
    /// Of the whole schedule, 64 hexadecimal digits.
    pub fingerprint: String,
}

/// Bounds of a tenure, from the configuration.
#[derive(Debug, Clone)]
pub struct TenureSettings {
    /// This replica, for the history of terms.
    pub leader: Leader,
    /// How the store is used. One connection is kept from batches for the sweep and for records where there are two or more.
    pub limits: TenureLimits,
    /// The longest that advancing the fence may take.
    pub advance_within: Duration,
    /// How long an abrupt end may take; half of it goes to ending the sessions at the store.
    pub teardown_budget: Duration,
    /// What the store is known to be is renewed in the coordinator this often.
    pub lease_ttl: Duration,
}

/// What every tenure of a process shares.
pub struct TenureDeps {
    /// The store.
    pub store: Arc<dyn Store>,
    /// Where facts about tenures go that leadership acts on.
    pub reports: Arc<dyn Reports>,
    /// Where facts go that people look at.
    pub observer: Arc<dyn TenureObserver>,
    /// The schedule, edited while running.
    pub schedule: watch::Receiver<Arc<ScheduleInForce>>,
    /// Connections that batches of all tenures may use at a time; each tenure has one more of its own.
    pub permits: Arc<Semaphore>,
    /// Who payouts are sent to: one for each definition, so that all tenures share its limits.
    pub receivers: Arc<Receivers>,
    /// Bounds.
    pub settings: TenureSettings,
}

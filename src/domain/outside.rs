//! What a job says about work that leaves the house: a receiver of requests, and the handlers `sql`, `http` and `command`.

use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::job::millis;

/// Who is sent requests over HTTP, for payouts and for the handler `http`, and what its answers are taken to mean.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiverDefinition {
    /// Where requests go: `http` or `https`, without user, query and fragment.
    pub url: String,
    /// Whether a second request with the same key has no second effect. False: an unknown outcome goes to a person.
    pub idempotent: bool,
    /// How long it remembers a key, from the first try on; past it nothing is sent again.
    #[serde(with = "millis")]
    pub key_valid_for: Duration,
    /// The only statuses that mean a final no.
    pub refusals: BTreeSet<u16>,
    /// So many refusals in a row stop the sending to it.
    pub max_refusals: u32,
    /// Further statuses that prove that nothing was done.
    pub not_done: BTreeSet<u16>,
    /// The longest wait for one answer.
    #[serde(with = "millis")]
    pub timeout: Duration,
    /// Paths of the secrets that requests are signed with, at most two: the old and the new one. Empty: no signature.
    pub secret_files: Vec<String>,
    /// Path of the authorities that sign its certificate, in PEM; `None`: the system's.
    pub tls_ca: Option<String>,
    /// Where a key is looked up: a URL that has `{key}` once.
    pub lookup_url: Option<String>,
    /// Requests per second; `None`: no limit.
    pub max_per_second: Option<u32>,
    /// Requests on the wire at once.
    pub max_in_flight: u32,
}

/// The handler `sql`: in-store, by statements of the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SqlDefinition {
    /// The query for the units: columns `key` and `payload`.
    pub units: String,
    /// One statement over `bursar_batch`, once per batch.
    pub settle: String,
}

/// The handler `http`: a request per unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HttpDefinition {
    /// The query for the units: columns `key` and `payload`.
    pub units: String,
    /// Who is sent them.
    pub receiver: ReceiverDefinition,
}

/// The handler `command`: a process per unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandDefinition {
    /// The query for the units: columns `key` and `payload`.
    pub units: String,
    /// Absolute path of the program.
    pub program: String,
    /// Its arguments. Nothing is expanded: no shell is involved.
    pub args: Vec<String>,
    /// Names of further variables that are handed through from the replica's own environment; never `BURSAR_…`.
    pub environment: BTreeSet<String>,
    /// Whether a second process with the same key has no second effect.
    pub idempotent: bool,
    /// The longest that one process may run; then its tree is killed, and its outcome unknown.
    #[serde(with = "millis")]
    pub timeout: Duration,
}

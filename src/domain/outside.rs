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

/// The bytes of a call's instruction: what the handlers `http` and `command` hand over for one unit. `payload` is the JSON
/// that the query for units gave it, kept as it is: no number passes through a float.
///
/// # Errors
/// The payload is not JSON: a unit is not handed over without what belongs to it.
pub fn call_body(key: &str, unit: &str, payload: Option<&str>) -> Result<Vec<u8>, serde_json::Error> {
    let mut body = serde_json::json!({ "key": key, "unit": unit }).to_string();
    if let Some(payload) = payload {
        serde_json::from_str::<serde::de::IgnoredAny>(payload)?;
        body.pop();
        body.push_str(",\"payload\":");
        body.push_str(payload.trim());
        body.push('}');
    }
    Ok(body.into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_is_handed_over_as_it_is() {
        let body = |payload| call_body("k", "u\"1", payload).map(|body| String::from_utf8(body).expect("text"));
        assert_eq!(body(None).expect("nothing to refuse"), r#"{"key":"k","unit":"u\"1"}"#);
        let exact = r#"{"amount":0.10000000000000000000001,"n":123456789012345678901234567890}"#;
        let expected = format!(r#"{{"key":"k","unit":"u\"1","payload":{exact}}}"#);
        assert_eq!(body(Some(exact)).expect("JSON"), expected);
        assert!(body(Some("{")).is_err() && body(Some("")).is_err());
    }
}

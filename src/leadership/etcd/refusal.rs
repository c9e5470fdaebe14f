//! What an error of etcd's client means: whether it is a refusal, and what to do about it, in words.
//!
//! The client says "transport error" and keeps the cause to itself; gRPC's codes do not tell a wrong password from a wrong
//! key. So the chain of causes is walked here, and etcd's own words are read.

use std::error::Error as _;

use etcd_client::Error;

use super::config::EtcdConfig;
use crate::tls;

/// gRPC: the caller is not who it says. An expired token shows so too, and a new connection brings a new one.
const UNAUTHENTICATED: i32 = 16;
/// gRPC: not allowed.
const PERMISSION_DENIED: i32 = 7;
/// gRPC: what etcd answers to a wrong user or password.
const INVALID_ARGUMENT: i32 = 3;

/// What the configuration calls what TLS goes by.
const TLS_KEYS: tls::Keys = tls::Keys {
    ca: "coordinator.tls.ca",
    name: "the endpoint's host, or coordinator.tls.server_name,",
    cert: "coordinator.tls.cert",
};

/// Words of etcd, and what to do about them.
const ADVICE: [(&str, &str); 6] = [
    ("invalid user ID or password", "look at coordinator.auth: the user, and what is in its password_file"),
    ("user name is empty", "etcd asks for a user: set [coordinator.auth]"),
    (
        "permission denied",
        "the user's role needs readwrite on every key that starts with coordinator.prefix and a slash",
    ),
    ("authentication is not enabled", "etcd knows no users: enable them there, or take [coordinator.auth] away"),
    ("invalid auth token", "the user's token is over: the next attempt asks for another"),
    ("revision of auth store is old", "users or roles were changed: the next attempt asks for another token"),
];

/// Words of a connection that broke without a reason.
const BROKE: [&str; 7] =
    ["connection closed", "closed connection", "connection reset", "broken pipe", "unexpected end", "eof", "canceled"];

/// Whether etcd refused, as opposed to not being reached.
pub(super) fn is_refusal(error: &Error) -> bool {
    match error {
        Error::GRpcStatus(status) => {
            [UNAUTHENTICATED, PERMISSION_DENIED, INVALID_ARGUMENT].contains(&i32::from(status.code()))
        }
        Error::InvalidArgs(_) | Error::InvalidUri(_) | Error::InvalidMetadataValue(_) => true,
        Error::IoError(_)
        | Error::TransportError(_)
        | Error::WatchError(_)
        | Error::Utf8Error(_)
        | Error::LeaseKeepAliveError(_)
        | Error::ElectError(_)
        | Error::EndpointError(_)
        | Error::EndpointsNotManaged
        | Error::Internal(_) => false,
    }
}

/// What it was, down to its first cause, and what to do about it.
pub(super) fn words(error: &Error, config: &EtcdConfig) -> String {
    let (said, advice) = match error {
        Error::GRpcStatus(status) => match status.source() {
            // Of the way: the status itself is tonic's, and says less than what is below it.
            Some(cause) => (tls::chain(cause), tls::advice(cause, TLS_KEYS)),
            None => (status.message().to_owned(), None),
        },
        Error::TransportError(error) => (tls::chain(error), tls::advice(error, TLS_KEYS)),
        Error::IoError(error) => (tls::chain(error), tls::advice(error, TLS_KEYS)),
        Error::InvalidArgs(_)
        | Error::InvalidUri(_)
        | Error::InvalidMetadataValue(_)
        | Error::WatchError(_)
        | Error::Utf8Error(_)
        | Error::LeaseKeepAliveError(_)
        | Error::ElectError(_)
        | Error::EndpointError(_)
        | Error::EndpointsNotManaged
        | Error::Internal(_) => (error.to_string(), None),
    };
    match advice.or_else(|| tls::advice_in(&said, TLS_KEYS)).or_else(|| advised(&said, config)) {
        Some(advice) => format!("{said}: {advice}"),
        None => said,
    }
}

fn advised(said: &str, config: &EtcdConfig) -> Option<String> {
    if let Some((_, advice)) = ADVICE.iter().find(|(words, _)| said.contains(words)) {
        return Some((*advice).to_owned());
    }
    let lower = said.to_lowercase();
    let broke = BROKE.iter().any(|words| lower.contains(words));
    let secure = config.endpoints.iter().any(|endpoint| endpoint.starts_with("https://"));
    let shows_one = config.tls.as_ref().is_some_and(|tls| tls.cert.is_some());
    match (broke, secure, shows_one) {
        // etcd looks at its list of revoked certificates after the handshake, and says nothing.
        (true, true, true) => Some(
            "etcd hangs up without a word on a client whose certificate was revoked: look at coordinator.tls.cert, and at etcd's log"
                .to_owned(),
        ),
        (true, true, false) => {
            Some("etcd may ask for a client's certificate: look at coordinator.tls, and at etcd's log".to_owned())
        }
        (true, false, _) => Some("etcd may ask for TLS: look at its log, and for https:// endpoints".to_owned()),
        (false, _, _) => None,
    }
}

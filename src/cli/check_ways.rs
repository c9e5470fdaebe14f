//! `bursar check`: ways to servers that nothing protects, or that cannot be gone from here. Warnings, since a network may protect
//! them (loopback needs none), and replicas may run elsewhere.

use std::net::Ipv4Addr;

use crate::app;
use crate::config::{Config, Coordinator, DatabasePlace, TlsMode};
use crate::domain::job::{HandlerDefinition, JobDefinition, PayoutDefinition};
use crate::domain::outside::ReceiverDefinition;

/// What is unprotected, a sentence each.
pub(super) fn unprotected(config: &Config, jobs: &[JobDefinition]) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Coordinator::Etcd(etcd) = &config.coordinator.kind
        && let Some(endpoint) = etcd.endpoints.iter().find(|url| url.starts_with("http://") && !is_here(url))
    {
        warnings.push(format!(
            "coordinator.endpoints: {endpoint} has no TLS: whoever is on the way can decide who leads; https:// and [coordinator.tls] \
             would protect it"
        ));
    }
    if let DatabasePlace::Postgres(postgres) = &config.database.place
        && !matches!(postgres.tls_mode, TlsMode::VerifyCa | TlsMode::VerifyFull)
        && !is_here(postgres.url.known().expose())
    {
        warnings.push(format!(
            "database.tls_mode {:?} lets whoever is on the way be the database; \"verify-full\" would not",
            postgres.tls_mode.as_str()
        ));
    }
    if let Some(endpoint) = config.traces.endpoint.as_ref().filter(|url| url.starts_with("http://") && !is_here(url)) {
        warnings.push(format!(
            "traces.endpoint: {endpoint} has no TLS: what ran when, and a token for the collector, can be read on the way"
        ));
    }
    for (job, receiver) in jobs.iter().filter_map(|job| receiver(job).map(|receiver| (job, receiver))) {
        if receiver.url.starts_with("http://") && !is_here(&receiver.url) {
            warnings
                .push(format!("{}: its receiver has no TLS: merchants and amounts can be read on the way", job.name));
        }
        if receiver.secret_files.is_empty() && !is_here(&receiver.url) {
            warnings.push(format!("{}: its requests are not signed: `secret_files` is missing", job.name));
        }
    }
    warnings
}

/// Files of receivers that cannot be used on this host: a warning, since the replicas may run on others.
pub(super) async fn unusable_files(jobs: &[JobDefinition]) -> Vec<String> {
    let mut warnings = Vec::new();
    for (job, receiver) in jobs.iter().filter_map(|job| receiver(job).map(|receiver| (job, receiver))) {
        let wrong = app::wrong_with_files(receiver).await;
        warnings.extend(wrong.iter().map(|wrong| format!("{}: nothing could be sent from here: {wrong}", job.name)));
    }
    warnings
}

fn receiver(job: &JobDefinition) -> Option<&ReceiverDefinition> {
    match &job.handler {
        HandlerDefinition::Ledger(ledger) => match &ledger.payout {
            PayoutDefinition::Http(receiver) => Some(receiver),
            PayoutDefinition::None => None,
        },
        HandlerDefinition::Http(http) => Some(&http.receiver),
        HandlerDefinition::Sql(_) | HandlerDefinition::Command(_) => None,
        #[cfg(feature = "chaos")]
        HandlerDefinition::Probe(_) => None,
    }
}

/// Whether a URL leads to this host: loopback, or a socket.
fn is_here(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let (authority, query) = rest.split_once(['/', '?']).unwrap_or((rest, ""));
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let (name, port) = host.rsplit_once(':').unwrap_or((host, ""));
    let name = if port.bytes().all(|byte| byte.is_ascii_digit()) { name } else { host };
    let is_address = name.parse::<Ipv4Addr>().is_ok_and(|address| address.is_loopback());
    let is_loopback = name == "localhost" || name == "[::1]" || is_address;
    // A host in the query is the one that counts.
    let is_socket = query.contains("host=/") || query.contains("host=%2F");
    if query.contains("host=") { is_socket } else { is_loopback }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_leads_to_this_host_is_known() {
        for url in [
            "http://127.0.0.1:2379",
            "postgres://a:b@localhost/x",
            "http://[::1]:1/",
            "http://127.0.0.1",
            "http://localhost",
            "postgres:///payments?host=/run/postgresql",
        ] {
            assert!(is_here(url), "{url}");
        }
        for url in [
            "http://etcd-0:2379",
            "postgres://localhost@db/x",
            "https://bank.internal/127.0.0.1",
            "http://localhost.bank.example",
            "http://127.evil.example:80/",
            "postgres://localhost/x?host=db",
        ] {
            assert!(!is_here(url), "{url}");
        }
    }
}

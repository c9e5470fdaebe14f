//! Who may speak to whom, and what nobody hears: TLS, users and their rights, secrets that change, secrets that stay secret,
//! and a port that bad clients cannot talk to death. Against real servers, with certificates that are made here.

mod authority;
mod bad_http;
mod etcd_tls;
mod etcd_users;
mod postgres_clients;
mod postgres_tls;
mod receiver_tls;
mod roles;
mod secrets;
mod secure_etcd;

use std::path::Path;
use std::time::Duration;

use crate::support::cluster::{ELECTION, IDLE};
use crate::support::replica::quoted;
use crate::support::{Cluster, Replica, Setup, eventually};

/// A start, with an election, on a busy machine.
const READY: Duration = Duration::from_secs(30);
/// How soon whatever is wrong is said.
const SAID: Duration = Duration::from_secs(20);

/// Clusters of one replica each, not started; where their servers are is up to the test.
async fn prepared(replicas: usize) -> Cluster {
    Setup::new(replicas, IDLE).steady().prepare().await
}

fn path(path: &Path) -> String {
    quoted(&path.to_string_lossy())
}

impl Replica {
    /// Waits until it says, where an operator looks and in its log, why it cannot lead, in these words; it lives all the same.
    async fn wait_says(&self, words: &[&str]) {
        self.wait_shows(words).await;
        let logged = async || words.iter().all(|word| self.log().contains(word)).then_some(());
        eventually(SAID, &format!("{} logs {words:?}", self.id()), logged).await;
    }

    /// The same without the log: a follower looks at the store less often than it is asked how it is.
    async fn wait_shows(&self, words: &[&str]) {
        let mut last = String::new();
        let said = async {
            loop {
                self.assert_running();
                if let Some((code, why)) = self.readyz().await {
                    if code == 503 && words.iter().all(|word| why.contains(word)) {
                        return;
                    }
                    last = why;
                }
                tokio::time::sleep(crate::support::wait::POLL).await;
            }
        };
        let in_time = tokio::time::timeout(SAID, said).await.is_ok();
        assert!(in_time, "{}: waited in vain for {words:?}; it said {last}\n{}", self.id(), self.log());
        assert_eq!(self.livez().await.map(|(code, _)| code), Some(200), "{} lives all the same", self.id());
    }

    /// Waits until its lease was renewed again: for most of a TTL it leads without that.
    async fn wait_renews(&self) {
        let count = async || self.metric("bursar_lease_renewal_seconds_count", &[]).await;
        let before = count().await.expect("it answers");
        // One may have been on its way.
        let renewed = async || (count().await? >= before + 2.0).then_some(());
        eventually(SAID, &format!("{} renews", self.id()), renewed).await;
    }

    /// Waits until it leads, and gives the term.
    async fn wait_leads(&self) -> f64 {
        eventually(READY, &format!("{} leads", self.id()), async || {
            self.assert_running();
            self.leads(ELECTION).await.then_some(())
        })
        .await;
        self.term_now().await
    }

    async fn term_now(&self) -> f64 {
        let term = self.metric("bursar_term", &[("election", ELECTION)]).await;
        term.unwrap_or_else(|| panic!("{} answers", self.id()))
    }

    /// Sees that it leads in that term.
    async fn assert_still_leads(&self, term: f64) {
        assert!(self.leads(ELECTION).await, "{} still leads:\n{}", self.id(), self.log());
        assert!((self.term_now().await - term).abs() < 0.5, "{}: no other term:\n{}", self.id(), self.log());
    }
}

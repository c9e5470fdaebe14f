//! The handlers of the user's own work on real replicas: `sql`, `http`, `command`, with the leader killed and stopped.

mod command;
mod embedded;
mod http;
mod receiving;
mod sql;

use std::time::Duration;

use crate::support::{Cluster, Pair, Setup};

/// A start, a takeover, a run of some seconds, on a busy machine.
const IN_VAIN: Duration = Duration::from_mins(1);

/// A job that runs when it is triggered; `tables` are its own, and what else it has.
fn job(name: &str, handler: &str, batch: u32, tables: &str) -> String {
    format!(
        "[[job]]\nname = \"{name}\"\ncron = \"0 0 1 1 *\"\nhandler = \"{handler}\"\n\
         [job.batch]\nsize = {batch}\nconcurrency = 1\n\
         [job.retry]\nmax_attempts = 2\nbackoff = \"10ms..20ms\"\n{tables}\n"
    )
}

/// The table of a `sql` job.
fn sql(units: &str, settle: &str) -> String {
    format!("[job.sql]\nunits = '''{units}'''\nsettle = '''{settle}'''")
}

/// Replicas that are ready, one of which leads.
async fn led(setup: Setup<'_>) -> (Cluster, usize) {
    let cluster = setup.start().await;
    for replica in cluster.replicas() {
        replica.wait_ready(IN_VAIN).await;
    }
    let leader = cluster.wait_leader(IN_VAIN).await;
    (cluster, leader)
}

/// On etcd and PostgreSQL.
fn on_servers(replicas: usize, schedule: &str) -> Setup<'static> {
    Setup::new(replicas, schedule).on(Pair::EtcdPostgres)
}

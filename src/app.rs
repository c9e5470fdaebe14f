//! The composition root: the only place that knows every module. It joins them and decides nothing.
//!
//! ```text
//!   main thread          signals, the order of start and stop            ([`replica`])
//!   `worker` threads     store, tenures, eligibility, schedule file      (a runtime of their own)
//!   `session` thread     the lease, elections                            (leadership's)
//!   `http` thread        health, metrics, status                         (web's, fed by the [`board`])
//! ```
//!
//! Invariants:
//! - Every critical task has an owner here. One that ends by itself ends the process: half a replica is worse than none.
//! - Adapters between modules that do not know each other (`bridge`, `memory`) translate, one to one.
//!
//! Deliberately absent: decisions. Whether to lead is leadership's, whether a write counts is the store's.

mod board;
mod bridge;
mod eligibility;
mod error;
mod memory;
mod observers;
mod reading;
mod replica;
mod schedule_file;
mod shares;
#[cfg(feature = "chaos")]
pub mod simulated;
mod store_link;

use std::path::PathBuf;
use std::sync::Arc;

use crate::config::{
    Config, Coordinator as CoordinatorKind, DatabasePlace, EtcdConfig as ConfiguredEtcd, LogFormat, PostgresConfig,
};
use crate::domain::outside::ReceiverDefinition;
use crate::leadership::Coordinator;
use crate::leadership::database::{
    PgCoordinator, PgCoordinatorSettings, SqliteCoordinator, SqliteCoordinatorSettings, lease_file,
};
use crate::leadership::etcd::{EtcdAuth, EtcdConfig, EtcdCoordinator, EtcdTls};
use crate::settlement::http::Receiver;
use crate::store::{CoordinatorBinding, Store, StoreError};
use crate::telemetry::{self, Format};

pub use error::ReplicaError;
pub use replica::run_replica;

/// This host's name, for people.
#[must_use]
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// A client of the coordinator that has not connected yet. It belongs to the runtime that it is used in.
#[must_use]
pub fn coordinator(config: &Config) -> Arc<dyn Coordinator> {
    match &config.coordinator.kind {
        CoordinatorKind::Etcd(etcd) => Arc::new(EtcdCoordinator::new(etcd_config(etcd))),
        CoordinatorKind::Database => match &config.database.place {
            DatabasePlace::Postgres(postgres) => Arc::new(PgCoordinator::new(pg_coordinator(postgres))),
            DatabasePlace::Sqlite(path) => Arc::new(SqliteCoordinator::new(SqliteCoordinatorSettings {
                path: lease_file(path),
                ttl: config.coordinator.lease_ttl,
            })),
        },
    }
}

/// The file of elections that the first replica will make: where it is missing, a coordinator's first question makes it.
#[must_use]
pub fn lease_file_to_be_made(config: &Config) -> Option<PathBuf> {
    match (&config.coordinator.kind, &config.database.place) {
        (CoordinatorKind::Database, DatabasePlace::Sqlite(path)) => {
            Some(lease_file(path)).filter(|file| !file.exists())
        }
        (
            CoordinatorKind::Database | CoordinatorKind::Etcd(_),
            DatabasePlace::Postgres(_) | DatabasePlace::Sqlite(_),
        ) => None,
    }
}

/// The store as commands use it.
///
/// # Errors
/// Those of the store's set-up.
pub fn store_for_command(config: &Config) -> Result<Arc<dyn Store>, StoreError> {
    store_link::open(config, store_link::Use::Command)
}

/// The store as `bursar migrate` uses it: a file of SQLite is made where it is missing.
///
/// # Errors
/// Those of the store's set-up.
pub fn store_for_migration(config: &Config) -> Result<Arc<dyn Store>, StoreError> {
    store_link::open(config, store_link::Use::Migration)
}

/// The store for a process that acts under a name of its own: refusals are recorded with it.
///
/// # Errors
/// Those of the store's set-up.
pub fn store_as(config: &Config, name: &str) -> Result<Arc<dyn Store>, StoreError> {
    store_link::open_as(config, name)
}

/// What is wrong with the files of a receiver on this host: its authorities, its secrets.
pub async fn wrong_with_files(receiver: &ReceiverDefinition) -> Vec<String> {
    Receiver::wrong_with_files(receiver).await
}

/// Starts the log as the configuration says.
fn start_log(config: &Config) {
    let format = match config.log.format {
        LogFormat::Json => Format::Json,
        LogFormat::Text => Format::Text,
    };
    telemetry::init_logging(format, config.log.level.as_str());
    telemetry::log_panics();
    #[cfg(feature = "chaos")]
    crate::chaos::announce();
}

/// Which coordinator the deployment's terms come from.
fn binding(config: &Config) -> CoordinatorBinding {
    match &config.coordinator.kind {
        CoordinatorKind::Etcd(etcd) => CoordinatorBinding { kind: "etcd".to_owned(), prefix: etcd.prefix.clone() },
        // One per database: there is nothing to tell apart.
        CoordinatorKind::Database => CoordinatorBinding { kind: "database".to_owned(), prefix: String::new() },
    }
}

fn pg_coordinator(postgres: &PostgresConfig) -> PgCoordinatorSettings {
    PgCoordinatorSettings {
        url: postgres.url.clone(),
        password: postgres.password.clone(),
        tls_mode: Some(postgres.tls_mode.as_str().to_owned()),
        tls_ca: postgres.tls_ca.clone(),
        tls_identity: postgres.tls_identity.clone(),
    }
}

fn etcd_config(etcd: &ConfiguredEtcd) -> EtcdConfig {
    EtcdConfig {
        endpoints: etcd.endpoints.clone(),
        prefix: etcd.prefix.clone(),
        tls: etcd.tls.as_ref().map(|tls| EtcdTls {
            ca: tls.ca.clone(),
            cert: tls.identity.as_ref().map(|(cert, _)| cert.clone()),
            key: tls.identity.as_ref().map(|(_, key)| key.clone()),
            server_name: tls.server_name.clone(),
        }),
        auth: etcd.auth.as_ref().map(|auth| EtcdAuth { user: auth.user.clone(), password: auth.password.clone() }),
    }
}

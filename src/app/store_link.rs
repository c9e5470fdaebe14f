//! The way to the store at the start: made from the configuration, and waited for with backoff while the store is away.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::board::Board;
use super::error::ReplicaError;
use crate::config::{Config, DatabasePlace};
use crate::store::postgres::{PgSettings, PgShares, PgStore};
use crate::store::sqlite::{SqliteSettings, SqliteStore};
use crate::store::{Actor, BindOutcome, CoordinatorBinding, Store, StoreError};

/// The first wait between two tries, doubled up to [`LONGEST_WAIT`].
const FIRST_WAIT: Duration = Duration::from_millis(250);
/// The longest wait between two tries.
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// A try has so long.
const TRY_WITHIN: Duration = Duration::from_secs(5);

/// The store that is configured.
enum Made {
    Postgres(Arc<PgStore>),
    Sqlite { store: Arc<SqliteStore>, path: PathBuf },
}

/// Who asks for the store: a file of SQLite is made, and brought up, by some of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    /// A replica: makes the file, and is listed in it; on PostgreSQL it keeps to its shares of the server's connections.
    Replica(PgShares),
    /// `bursar migrate`: makes the file.
    Migration,
    /// Any other command: takes the file as it is.
    Command,
}

impl Made {
    fn new(config: &Config, name: &str, used: Use) -> Result<Self, StoreError> {
        let postgres = match &config.database.place {
            DatabasePlace::Postgres(postgres) => postgres,
            DatabasePlace::Sqlite(path) => {
                let settings = SqliteSettings {
                    path: path.clone(),
                    replica: name.to_owned(),
                    create: match used {
                        Use::Replica(_) | Use::Migration => true,
                        Use::Command => false,
                    },
                    is_replica: matches!(used, Use::Replica(_)),
                };
                return Ok(Self::Sqlite { store: Arc::new(SqliteStore::new(&settings)), path: path.clone() });
            }
        };
        let store = PgStore::new(&PgSettings {
            url: postgres.url.clone(),
            password: postgres.password.clone(),
            tls_mode: Some(postgres.tls_mode.as_str().to_owned()),
            tls_ca: postgres.tls_ca.clone(),
            tls_identity: postgres.tls_identity.clone(),
            shares: match used {
                Use::Replica(shares) => Some(shares),
                Use::Migration | Use::Command => None,
            },
            replica: name.to_owned(),
        })?;
        Ok(Self::Postgres(Arc::new(store)))
    }

    /// Which one, for the log: of a server no URL, which may hold a password.
    fn place(&self) -> String {
        match self {
            Self::Postgres(_) => "PostgreSQL".to_owned(),
            Self::Sqlite { path, .. } => path.display().to_string(),
        }
    }

    fn port(&self) -> Arc<dyn Store> {
        match self {
            Self::Postgres(store) => Arc::clone(store) as Arc<dyn Store>,
            Self::Sqlite { store, .. } => Arc::clone(store) as Arc<dyn Store>,
        }
    }

    /// Connects before anything is asked of it.
    async fn open(&self) -> Result<(), StoreError> {
        match self {
            Self::Postgres(store) => store.open_control().await,
            Self::Sqlite { store, .. } => store.open().await,
        }
    }
}

/// The store for a command: it connects with its first question.
pub(super) fn open(config: &Config, used: Use) -> Result<Arc<dyn Store>, StoreError> {
    Ok(Made::new(config, "command", used)?.port())
}

/// The store for a command under a name of its own.
pub(super) fn open_as(config: &Config, name: &str) -> Result<Arc<dyn Store>, StoreError> {
    Ok(Made::new(config, name, Use::Command)?.port())
}

/// The store for a replica: reached, fit to lead on, and bound to this coordinator. Waits as long as it is away.
///
/// # Errors
/// What waiting does not mend: another coordinator's store, a way to the database that breaks a guarantee.
pub(super) async fn connect(
    config: Arc<Config>,
    name: String,
    shares: PgShares,
    binding: CoordinatorBinding,
    board: Arc<Board>,
) -> Result<Arc<dyn Store>, ReplicaError> {
    let store = Made::new(&config, &name, Use::Replica(shares))?;
    let mut said = String::new();
    let mut wait = FIRST_WAIT;
    loop {
        let attempt =
            tokio::time::timeout(TRY_WITHIN, try_once(&store, &binding, config.operator.four_eyes, &board)).await;
        let error = match attempt {
            Ok(Ok(())) => return Ok(store.port()),
            Ok(Err(Failed::Unfit(error))) => return Err(error),
            Ok(Err(Failed::Away(error))) => error,
            Err(_elapsed) => StoreError::TimedOut { operation: "connect", within: TRY_WITHIN },
        };
        let why = error.to_string();
        board.store_checked(Err(why.clone()));
        // The same words are not said again with each try.
        if said != why {
            tracing::warn!(%error, "the store cannot be used yet; waits");
            said = why;
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(LONGEST_WAIT);
    }
}

enum Failed {
    Away(StoreError),
    Unfit(ReplicaError),
}

async fn try_once(
    made: &Made,
    binding: &CoordinatorBinding,
    four_eyes: Option<bool>,
    board: &Board,
) -> Result<(), Failed> {
    let judged = |error: StoreError| match error {
        StoreError::Unfit { .. } => Failed::Unfit(error.into()),
        // A schema that a migration brings, a standby that is promoted: worth waiting for.
        StoreError::Unreachable { .. }
        | StoreError::TryAgain { .. }
        | StoreError::StatementTimeout { .. }
        | StoreError::TimedOut { .. }
        | StoreError::Unknown { .. }
        | StoreError::ReadOnly { .. }
        | StoreError::Schema { .. }
        | StoreError::Forgot { .. }
        | StoreError::Ended { .. }
        | StoreError::Broken { .. } => Failed::Away(error),
    };
    made.open().await.map_err(judged)?;
    let store = made.port();
    let health = store.health().await.map_err(judged)?;
    match store.bind(binding).await.map_err(judged)? {
        BindOutcome::Bound { deployment_id } => {
            if four_eyes == Some(true) {
                // Kept in the store from now on, whatever others are told.
                let actor = Actor { user: "bursar".to_owned(), host: super::host_name() };
                store.set_four_eyes(true, "[operator] four_eyes = true", &actor).await.map_err(judged)?;
            }
            tracing::info!(store = made.place(), %deployment_id, "the store is reached");
            board.store_checked(Ok(health.now));
            Ok(())
        }
        BindOutcome::Other(found) => {
            Err(Failed::Unfit(ReplicaError::OtherCoordinator { found, configured: binding.clone() }))
        }
    }
}

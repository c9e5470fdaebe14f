//! The configuration as the rest of the program sees it: complete, checked, secrets wrapped.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::domain::{ElectionName, ReplicaId};
use crate::secret::SecretSource;

use super::error::Place;

/// Everything that one replica, or one command, is told.
#[derive(Debug, Clone)]
pub struct Config {
    /// Who this process is.
    pub replica: ReplicaConfig,
    /// Where elections are held, and the times of leading.
    pub coordinator: CoordinatorConfig,
    /// The store.
    pub database: DatabaseConfig,
    /// The read-only HTTP port.
    pub http: HttpConfig,
    /// Logging.
    pub log: LogConfig,
    /// What operators' acts wait for.
    pub operator: OperatorConfig,
    /// Where spans go.
    pub traces: TracesConfig,
    /// The schedule file, made whole: relative to the configuration file that names it.
    pub schedule: PathBuf,
    /// Nobody named the schedule file and the store is SQLite: it may be missing, and then there are no jobs.
    pub schedule_may_be_missing: bool,
    /// Which configuration this is, in words: the file, or that there is none.
    pub origin: String,
    /// Where `database.max_connections` was written, for findings that need the schedule too.
    pub(super) connections_place: Place,
}

/// Who this process is.
#[derive(Debug, Clone)]
pub struct ReplicaConfig {
    /// Its id; `None`: host name and a random part, new at every start.
    pub id: Option<ReplicaId>,
    /// What it stands for.
    pub elections: Elections,
    /// Where others reach its HTTP port, for people; `None`: as it listens.
    pub address: Option<String>,
}

/// Which elections a replica stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Elections {
    /// All that the schedule names.
    All,
    /// These, at least one.
    Named(BTreeSet<ElectionName>),
}

impl Elections {
    /// Those to stand for, where the schedule's jobs belong to `known`; empty where none of them is meant. Elections that are named
    /// are stood for also where no job is left in them: what was opened there ends there.
    #[must_use]
    pub fn among(&self, known: &BTreeSet<ElectionName>) -> BTreeSet<ElectionName> {
        match self {
            Self::All => known.clone(),
            Self::Named(named) if named.is_disjoint(known) => BTreeSet::new(),
            Self::Named(named) => named.clone(),
        }
    }
}

/// Where elections are held, and the times of leading.
#[derive(Debug, Clone)]
pub struct CoordinatorConfig {
    /// The store of elections.
    pub kind: Coordinator,
    /// The lease that is asked for: whole seconds, 5 to 300.
    pub lease_ttl: Duration,
    /// Time kept back at the lease's end for ending what runs.
    pub teardown_budget: Duration,
    /// How long a planned hand-over waits for answers under way.
    pub drain: Duration,
    /// A leader whose store is out of reach for so long resigns.
    pub resign_without_store: Duration,
}

/// The store of elections.
#[derive(Debug, Clone)]
pub enum Coordinator {
    /// An etcd cluster.
    Etcd(EtcdConfig),
    /// The store's database: tables of its own in PostgreSQL, a file of its own beside a SQLite store.
    Database,
}

/// How etcd is reached.
#[derive(Debug, Clone)]
pub struct EtcdConfig {
    /// 1 to 16 URLs, all `http` or all `https`.
    pub endpoints: Vec<String>,
    /// What all keys of this deployment start with: `/` first, none last.
    pub prefix: String,
    /// TLS with certificates of one's own; `None` with `https`: the system's authorities.
    pub tls: Option<EtcdTls>,
    /// User and password.
    pub auth: Option<EtcdAuth>,
}

/// Certificates for etcd, in PEM; looked at when the configuration was read, read anew for each connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EtcdTls {
    /// Path of the authorities that sign the members' certificates.
    pub ca: Option<PathBuf>,
    /// Paths of one's own certificate and its key.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// The name that the members' certificates carry, where it is not the endpoint's.
    pub server_name: Option<String>,
}

/// User and password for etcd.
#[derive(Debug, Clone)]
pub struct EtcdAuth {
    /// The user.
    pub user: String,
    /// The password.
    pub password: SecretSource,
}

/// How the store is reached.
#[derive(Debug, Clone)]
pub struct DatabaseConfig {
    /// Where it is.
    pub place: DatabasePlace,
    /// Connections of the process, at least 4 + the number of its elections.
    pub max_connections: u32,
    /// The longest statement of a tenure.
    pub statement_timeout: Duration,
}

/// Where the store is.
#[derive(Debug, Clone)]
pub enum DatabasePlace {
    /// On a server.
    Postgres(PostgresConfig),
    /// In a file on this host, made whole as the schedule's path is.
    Sqlite(PathBuf),
}

impl DatabasePlace {
    /// What it is, for a log: the file, or that it is a server. An address may hold a password.
    #[must_use]
    pub fn in_words(&self) -> String {
        match self {
            Self::Postgres(_) => "PostgreSQL".to_owned(),
            Self::Sqlite(file) => format!("SQLite file {}", file.display()),
        }
    }
}

/// How PostgreSQL is reached.
#[derive(Debug, Clone)]
pub struct PostgresConfig {
    /// `postgres://…`; may hold a password, so it is wrapped.
    pub url: SecretSource,
    /// The password, where the URL has none.
    pub password: Option<SecretSource>,
    /// How the connection is secured.
    pub tls_mode: TlsMode,
    /// Path of the authorities' certificates, in PEM; looked at when the configuration was read.
    pub tls_ca: Option<PathBuf>,
    /// Paths of one's own certificate and its key, in PEM; looked at when the configuration was read.
    pub tls_identity: Option<(PathBuf, PathBuf)>,
}

/// How a PostgreSQL connection is secured: libpq's `sslmode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsMode {
    /// Not at all.
    Disable,
    /// Where the server can.
    Prefer,
    /// Always, without a look at the certificate.
    Require,
    /// Always, with a certificate of a known authority.
    VerifyCa,
    /// Always, with such a certificate for this host.
    VerifyFull,
}

impl TlsMode {
    /// All of them, by libpq's name.
    pub(super) const WORDS: [(&'static str, Self); 5] = [
        ("disable", Self::Disable),
        ("prefer", Self::Prefer),
        ("require", Self::Require),
        ("verify-ca", Self::VerifyCa),
        ("verify-full", Self::VerifyFull),
    ];

    /// libpq's name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Disable => "disable",
            Self::Prefer => "prefer",
            Self::Require => "require",
            Self::VerifyCa => "verify-ca",
            Self::VerifyFull => "verify-full",
        }
    }
}

/// What operators' acts wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OperatorConfig {
    /// Whether resolving, releasing and reverting wait for another database role. Kept in the store once it is true anywhere;
    /// `None`: as the store says. False takes nothing away: `bursar migrate` asks for the end, which waits too.
    pub four_eyes: Option<bool>,
}

/// Traces over OTLP.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TracesConfig {
    /// The collector, `http://HOST:PORT` or `https://HOST:PORT`, spoken to by gRPC; `None`: there are no traces.
    pub endpoint: Option<String>,
}

/// The read-only HTTP port.
#[derive(Debug, Clone, Copy)]
pub struct HttpConfig {
    /// Where it listens; port 0 asks the system for one.
    pub listen: SocketAddr,
}

/// Logging.
#[derive(Debug, Clone, Copy)]
pub struct LogConfig {
    /// The form of a line.
    pub format: LogFormat,
    /// From which level on.
    pub level: LogLevel,
}

/// The form of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// One JSON object to a line.
    Json,
    /// For people.
    Text,
}

/// From which level on is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogLevel {
    /// Errors.
    Error,
    /// And warnings.
    Warn,
    /// And what happens once in a while.
    Info,
    /// And what happens often.
    Debug,
    /// And everything.
    Trace,
}

impl LogLevel {
    /// All of them, by name.
    pub(super) const WORDS: [(&'static str, Self); 5] = [
        ("error", Self::Error),
        ("warn", Self::Warn),
        ("info", Self::Info),
        ("debug", Self::Debug),
        ("trace", Self::Trace),
    ];

    /// The name, as `tracing` filters take it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }
}

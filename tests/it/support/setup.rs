//! What a cluster is to be, and how it is made: servers, prefix, database, configurations, proxies.

use super::cluster::{Cluster, Data, IDLE};
use super::database::Database;
use super::etcd::{Etcd, fresh_prefix};
use super::postgres::Postgres;
use super::process::{Finished, Launch};
use super::proxy::Proxy;
use super::replica::{BINARY, Keys, Replica, configuration, quoted, set};
use super::scratch;

/// What elections and units are kept in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pair {
    /// Elections in etcd, the store on PostgreSQL.
    EtcdPostgres,
    /// Both on PostgreSQL.
    PostgresAlone,
    /// Both in files of SQLite, which all replicas share.
    Embedded,
}

/// What a cluster is to be.
#[derive(Debug)]
pub struct Setup<'a> {
    replicas: usize,
    schedule: String,
    keys: Keys,
    env: Vec<(String, String)>,
    proxied: bool,
    pair: Pair,
    etcd: Option<&'a Etcd>,
    postgres: Option<&'a Postgres>,
    database: Option<Database>,
    database_port: Option<u16>,
}

impl<'a> Setup<'a> {
    /// That many replicas with that schedule, a TTL of 5 s, on the shared servers, without proxies.
    pub fn new(replicas: usize, schedule: &str) -> Self {
        let mut keys = Keys::new();
        set(&mut keys, "coordinator", "kind", quoted("etcd"));
        set(&mut keys, "coordinator", "lease_ttl", quoted("5s"));
        set(&mut keys, "log", "format", quoted("text"));
        // The shared server takes 300 sessions, and many clusters stand beside each other.
        set(&mut keys, "database", "max_connections", "8");
        Self {
            replicas,
            schedule: schedule.to_owned(),
            keys,
            env: Vec::new(),
            proxied: false,
            pair: Pair::EtcdPostgres,
            etcd: None,
            postgres: None,
            database: None,
            database_port: None,
        }
    }

    /// Another TTL, in whole seconds.
    #[must_use]
    pub fn ttl(self, seconds: u64) -> Self {
        self.key("coordinator", "lease_ttl", &quoted(&format!("{seconds}s")))
    }

    /// A leader that stays one also on a machine that is busy for seconds on end: for tests in which only the test itself
    /// ends leadership.
    #[must_use]
    pub fn steady(self) -> Self {
        self.ttl(20).key("coordinator", "resign_without_store", &quoted("60s"))
    }

    /// Any key of the configuration; the value as TOML writes it.
    #[must_use]
    pub fn key(mut self, section: &str, key: &str, value: &str) -> Self {
        set(&mut self.keys, section, key, value);
        self
    }

    /// A variable of every replica's environment.
    #[must_use]
    pub fn env(mut self, key: &str, value: &str) -> Self {
        self.env.push((key.to_owned(), value.to_owned()));
        self
    }

    /// What every replica does to itself: the value of `BURSAR_CHAOS`.
    #[must_use]
    pub fn chaos(self, what: &str) -> Self {
        self.env("BURSAR_CHAOS", what)
    }

    /// Puts a proxy before each server of each replica.
    #[must_use]
    pub fn behind_proxies(mut self) -> Self {
        self.proxied = true;
        self
    }

    /// Without etcd: elections in the store's PostgreSQL.
    #[must_use]
    pub fn on_database_coordinator(self) -> Self {
        self.on(Pair::PostgresAlone)
    }

    /// Without any server: the store and the elections in files of SQLite.
    #[must_use]
    pub fn embedded(self) -> Self {
        self.on(Pair::Embedded)
    }

    /// On a pair, for tests that run on several.
    #[must_use]
    pub fn on(mut self, pair: Pair) -> Self {
        self.pair = pair;
        let kind = match pair {
            Pair::EtcdPostgres => "etcd",
            Pair::PostgresAlone | Pair::Embedded => "database",
        };
        self.key("coordinator", "kind", &quoted(kind))
    }

    /// On a private etcd.
    #[must_use]
    pub fn on_etcd(mut self, etcd: &'a Etcd) -> Self {
        self.etcd = Some(etcd);
        self
    }

    /// On a private PostgreSQL.
    #[must_use]
    pub fn on_postgres(mut self, postgres: &'a Postgres) -> Self {
        self.postgres = Some(postgres);
        self
    }

    /// On a given database, which is taken as it is.
    #[must_use]
    pub fn on_database(mut self, database: Database) -> Self {
        self.database = Some(database);
        self
    }

    /// Reaches the database through another port than the server's: a pooler's.
    #[must_use]
    pub fn through_port(mut self, port: u16) -> Self {
        self.database_port = Some(port);
        self
    }

    /// Makes it all ready: a migrated database, configurations, proxies. No replica is started.
    pub async fn prepare(self) -> Cluster {
        match self.pair {
            Pair::EtcdPostgres => self.with_etcd().await,
            Pair::PostgresAlone => self.without_etcd().await,
            Pair::Embedded => self.in_files(),
        }
    }

    /// Replicas that share these keys and have nothing between them and their database.
    fn plain(&self, url: &str) -> Vec<Replica> {
        assert!(!self.proxied, "there are no lines to put proxies into");
        let replica = |index| {
            let mut keys = self.keys.clone();
            set(&mut keys, "database", "url", quoted(url));
            let replica = Replica::new(&format!("r{index}"), keys, &self.schedule, Vec::new(), None);
            for (key, value) in &self.env {
                replica.set_env(key, value);
            }
            replica
        };
        (0..self.replicas).map(replica).collect()
    }

    fn in_files(self) -> Cluster {
        let file = scratch::folder("embedded").join("bursar.db");
        let replicas = self.plain(&format!("sqlite://{}", file.display()));
        Cluster::new(replicas, Data::File(file), String::new())
    }

    async fn without_etcd(mut self) -> Cluster {
        let database = match self.database.take() {
            Some(database) => database,
            None => migrated_database(self.postgres.unwrap_or_else(|| Postgres::shared())).await,
        };
        let url = database.url_through(self.database_port.unwrap_or(database.port()));
        Cluster::new(self.plain(&url), Data::Server(database), String::new())
    }

    async fn with_etcd(self) -> Cluster {
        let (etcd, prefix) = (self.etcd.unwrap_or_else(|| Etcd::shared()), fresh_prefix());
        let database = match self.database {
            Some(database) => database,
            None => migrated_database(self.postgres.unwrap_or_else(|| Postgres::shared())).await,
        };
        let database_port = self.database_port.unwrap_or(database.port());
        let replicas = (0..self.replicas).map(|index| {
            let (lines, line) = if self.proxied {
                (etcd.ports().into_iter().map(Proxy::to).collect(), Some(Proxy::to(database_port)))
            } else {
                (Vec::new(), None)
            };
            let endpoints: Vec<String> = if self.proxied {
                lines.iter().map(|line: &Proxy| quoted(&line.http())).collect()
            } else {
                etcd.endpoints().iter().map(|endpoint| quoted(endpoint)).collect()
            };
            let url = database.url_through(line.as_ref().map_or(database_port, Proxy::port));
            let mut keys = self.keys.clone();
            set(&mut keys, "coordinator", "endpoints", format!("[{}]", endpoints.join(", ")));
            set(&mut keys, "coordinator", "prefix", quoted(&prefix));
            set(&mut keys, "database", "url", quoted(&url));
            let replica = Replica::new(&format!("r{index}"), keys, &self.schedule, lines, line);
            for (key, value) in &self.env {
                replica.set_env(key, value);
            }
            replica
        });
        Cluster::new(replicas.collect(), Data::Server(database), prefix)
    }

    /// Makes it ready and starts all replicas; waits for nothing.
    pub async fn start(self) -> Cluster {
        let cluster = self.prepare().await;
        cluster.replicas().iter().for_each(Replica::start);
        cluster
    }
}
/// A database with the product's schema, made by its own command once per server.
pub async fn migrated_database(server: &Postgres) -> Database {
    server.database_from("migrated", async |empty| migrate(empty).ok_or_fail()).await
}

/// Runs the product's migrations on a database.
pub fn migrate(database: &Database) -> Finished {
    let folder = scratch::folder("migrate");
    let mut keys = Keys::new();
    set(&mut keys, "", "schedule", quoted("schedule.toml"));
    set(&mut keys, "coordinator", "kind", quoted("etcd"));
    set(&mut keys, "coordinator", "endpoints", "[\"http://127.0.0.1:1\"]");
    set(&mut keys, "coordinator", "prefix", quoted("/bursar/migrate"));
    set(&mut keys, "database", "url", quoted(&database.url()));
    set(&mut keys, "http", "listen", quoted("127.0.0.1:9464"));
    let config = folder.join("bursar.toml");
    std::fs::write(&config, configuration(&keys)).expect("the folder is new");
    std::fs::write(folder.join("schedule.toml"), IDLE).expect("the folder is new");
    Launch::new("bursar-migrate", BINARY).arg("--config").arg(&config).arg("migrate").folder(&folder).finish()
}

impl Finished {
    /// As [`Self::ok`], for what it wrote is of no interest.
    fn ok_or_fail(self) {
        self.ok();
    }
}
#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_replica_has_its_own_lines_and_configuration() {
        let database = Postgres::shared().fresh_database().await;
        let cluster = Setup::new(2, IDLE).ttl(7).behind_proxies().on_database(database).prepare().await;
        let read = |index: usize| {
            let text = std::fs::read_to_string(cluster.replica(index).config()).expect("it was written");
            toml::from_str::<toml::Table>(&text).expect("it is TOML")
        };
        let (one, other) = (read(0), read(1));
        assert_eq!(one["coordinator"]["lease_ttl"].as_str(), Some("7s"));
        assert_eq!(one["coordinator"]["prefix"], other["coordinator"]["prefix"]);
        for (section, key) in [("coordinator", "endpoints"), ("database", "url"), ("http", "listen"), ("replica", "id")]
        {
            assert_ne!(one[section][key], other[section][key], "{section}.{key}");
        }
        let url = cluster.database().url_through(cluster.replica(1).database_line().port());
        let mut connection = <sqlx::PgConnection as sqlx::Connection>::connect(&url).await.expect("the proxy passes");
        sqlx::query("select 1").execute(&mut connection).await.expect("the proxy passes");
        assert_eq!(cluster.replica(1).database_line().accepted(), 1);
        assert_eq!(cluster.leader().await, None);
    }
}

//! A fleet of replicas on one etcd prefix and one database, and what tests do to it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection};

use super::database::Database;
use super::entries::Entries;
use super::process::Finished;
use super::replica::Replica;
use super::sampler::Sampler;
use super::wait::eventually;

pub use super::setup::{Pair, Setup, migrate, migrated_database};

/// The election that jobs belong to unless they say otherwise.
pub const ELECTION: &str = "settlement";
/// A schedule that is valid and fires at no time that a test sees, but for one that runs at midnight of New Year.
pub const IDLE: &str = "[[job]]\nname = \"idle\"\ncron = \"0 0 1 1 *\"\nhandler = \"ledger\"\n";
/// How long replicas that are asked to end at the end of a test may take.
const SHUT_DOWN_WITHIN: Duration = Duration::from_secs(5);

/// The whole number that a query of a file gives; it is opened for reading alone, and as long as there is no such table, 0.
async fn number_in(file: &Path, query: &str) -> i64 {
    let options = SqliteConnectOptions::new().filename(file).read_only(true);
    let Ok(mut connection) = options.connect().await else { return 0 };
    let found = sqlx::query_scalar(AssertSqlSafe(query.to_owned())).fetch_one(&mut connection).await;
    connection.close().await.ok();
    match found {
        Ok(number) => number,
        Err(error) if error.to_string().contains("no such table") => 0,
        Err(error) => panic!("{query}: {error}"),
    }
}

/// Where a cluster's store is.
#[derive(Debug)]
pub(super) enum Data {
    Server(Database),
    File(PathBuf),
}

/// Replicas that share a prefix and a database; asked to end when dropped, and gone then.
#[derive(Debug)]
pub struct Cluster {
    replicas: Vec<Replica>,
    data: Data,
    prefix: String,
}

impl Cluster {
    pub(super) fn new(replicas: Vec<Replica>, data: Data, prefix: String) -> Self {
        Self { replicas, data, prefix }
    }

    /// A replica.
    pub fn replica(&self, index: usize) -> &Replica {
        &self.replicas[index]
    }

    /// All replicas.
    pub fn replicas(&self) -> &[Replica] {
        &self.replicas
    }

    /// The database.
    ///
    /// # Panics
    /// When the store is a file.
    pub fn database(&self) -> &Database {
        match &self.data {
            Data::Server(database) => database,
            Data::File(file) => panic!("the store is {}", file.display()),
        }
    }

    /// Whether the store is on a server.
    pub fn has_server(&self) -> bool {
        matches!(self.data, Data::Server(_))
    }

    /// The store's file.
    ///
    /// # Panics
    /// When it is on a server.
    pub fn file(&self) -> &Path {
        match &self.data {
            Data::File(file) => file,
            Data::Server(database) => panic!("the store is the database {}", database.name()),
        }
    }

    /// The whole number that a query gives, which is written for PostgreSQL and means the same on SQLite, where tables are in
    /// no schema.
    ///
    /// # Panics
    /// When it gives none.
    pub async fn number(&self, query: &str) -> i64 {
        match &self.data {
            Data::Server(database) => database.value(query).await,
            Data::File(file) => number_in(file, &query.replace("bursar.", "")).await,
        }
    }

    /// The prefix of its keys in etcd.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The key of an election's term.
    pub fn term_key(&self) -> String {
        format!("{}/elections/{ELECTION}/term", self.prefix)
    }

    /// The key of an election's leader.
    pub fn leader_key(&self) -> String {
        format!("{}/elections/{ELECTION}/leader", self.prefix)
    }

    /// Runs a command of the product with the first replica's configuration.
    pub fn command(&self, args: &[&str]) -> Finished {
        self.replicas[0].command(args)
    }

    /// Imports entries from a source, by the product's own command.
    pub fn import(&self, entries: &Entries, source: &str) -> Finished {
        let file = entries.write("entries.csv");
        self.command(&["import", &file.to_string_lossy(), "--source", source])
    }

    /// Puts another schedule in place for all.
    pub fn write_schedule(&self, text: &str) {
        self.replicas.iter().for_each(|replica| replica.write_schedule(text));
    }

    /// Who says, at this scrape, that it leads.
    pub async fn leader(&self) -> Option<usize> {
        for (index, replica) in self.replicas.iter().enumerate() {
            if replica.is_running() && replica.leads(ELECTION).await {
                return Some(index);
            }
        }
        None
    }

    /// Waits until one leads.
    ///
    /// # Panics
    /// When none does in time.
    pub async fn wait_leader(&self, within: Duration) -> usize {
        self.wait_other_leader(within, &[]).await
    }

    /// Waits until one leads that is none of these.
    ///
    /// # Panics
    /// When none does in time.
    pub async fn wait_other_leader(&self, within: Duration, except: &[usize]) -> usize {
        eventually(within, &format!("one that is none of {except:?} leads"), async || {
            // One by one, leaving out the excepted: a stopped one would hold up the question.
            for (index, replica) in self.replicas.iter().enumerate().filter(|(index, _)| !except.contains(index)) {
                if replica.is_running() && replica.leads(ELECTION).await {
                    return Some(index);
                }
            }
            None
        })
        .await
    }

    /// Starts to watch that never two lead.
    pub fn watch(&self) -> Sampler {
        let ports: Vec<u16> = self.replicas.iter().map(Replica::http_port).collect();
        Sampler::start(&ports)
    }

    /// Asks all that run to end and sees that each does, in good order.
    ///
    /// # Panics
    /// When one does not end in time, or not with 0.
    pub fn shut_down(&self, within: Duration) {
        let running: Vec<&Replica> = self.replicas.iter().filter(|replica| replica.is_running()).collect();
        // All are asked before the first is waited for.
        for replica in &running {
            replica.ask_to_end();
        }
        for replica in running {
            let status = replica.end_within(within).expect("it was running");
            assert!(status.success(), "{} ended with {status}:\n{}", replica.id(), replica.log());
        }
    }

    /// Whether the product's own audit finds the store in order; the checks that follow every test of faults.
    ///
    /// # Panics
    /// When it does not.
    pub fn assert_audited(&self) {
        self.command(&["audit"]).ok();
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        self.replicas.iter().for_each(Replica::ask_to_end);
        for replica in &self.replicas {
            replica.end_within(SHUT_DOWN_WITHIN);
        }
    }
}

//! A real PostgreSQL on loopback: one server that tests share, each in a database of its own, and private ones for tests
//! that restart, kill or set back theirs.
//!
//! The product's role is `bursar`, without superuser, owner of the databases that it is given. Servers run without fsync
//! (no test pulls the machine's plug) but with `synchronous_commit`, so that what is acknowledged survives a killed server.
//! Only the first server runs `initdb`; the others copy its files.

use std::fs;
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use rustix::process::Signal;
use sqlx::{AssertSqlSafe, Connection, PgConnection};

use super::database::Database;
use super::ports::{free_port, lent};
use super::process::{Launch, Process};
use super::scratch;
use super::wait::eventually_blocking;

/// Names the port of a server that another test process shares with this one.
pub const LENT: &str = "BURSAR_TEST_POSTGRES";

/// The operating system's user that servers run as, where we are root: PostgreSQL refuses root.
const OS_USER: &str = "postgres";
/// The product's role.
pub const ROLE: &str = "bursar";
/// A server starts within a second, also after a crash; the rest is for a busy machine.
const READY_WITHIN: Duration = Duration::from_mins(1);
/// A fast stop ends sessions and writes a checkpoint.
const STOPPED_WITHIN: Duration = Duration::from_mins(1);

/// What each server is started with, beside its port and folders.
const SETTINGS: &[&str] = &[
    "listen_addresses=127.0.0.1",
    "max_connections=300",
    "fsync=off",
    "full_page_writes=off",
    "synchronous_commit=on",
    "shared_buffers=64MB",
    // In files, that go with the server's folder: what lies in the kernel stays there when the server is killed.
    "dynamic_shared_memory_type=mmap",
    "max_wal_size=512MB",
    "log_line_prefix=%m [%p] %a ",
    "log_min_messages=warning",
    "timezone=UTC",
];

/// The folder of the server's programs: the newest version that is installed.
///
/// # Panics
/// When there is none.
pub fn programs() -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").map(|entries| {
        entries.flatten().map(|entry| entry.path().join("bin")).filter(|bin| bin.join("initdb").exists()).max()
    });
    versions.ok().flatten().expect("PostgreSQL is installed below /usr/lib/postgresql (scripts/test installs it)")
}

/// Gives a file or folder to the user that servers run as.
///
/// # Panics
/// When `chown` fails.
pub fn owned_by_postgres(path: &Path) {
    if rustix::process::geteuid().is_root() {
        let output = Command::new("chown").arg("-R").arg(OS_USER).arg(path).output().expect("chown can be started");
        assert!(output.status.success(), "chown {}: {}", path.display(), String::from_utf8_lossy(&output.stderr));
    }
}

/// A folder with what `initdb` made, never started: copied for each server.
fn seed() -> &'static Path {
    static SEED: OnceLock<PathBuf> = OnceLock::new();
    SEED.get_or_init(|| {
        let folder = scratch::folder("initdb");
        owned_by_postgres(&folder);
        let data = folder.join("data");
        Launch::new("initdb", programs().join("initdb"))
            .args(["--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C.UTF-8", "--no-sync", "-D"])
            .arg(&data)
            .folder(&folder)
            .user(OS_USER)
            .finish()
            .ok();
        data
    })
}

/// A server; gone when dropped.
#[derive(Debug)]
pub struct Postgres {
    folder: PathBuf,
    port: u16,
    settings: Vec<String>,
    env: Vec<(String, String)>,
    process: Mutex<Option<Process>>,
    /// Names of template databases that are ready.
    templates: tokio::sync::Mutex<Vec<String>>,
}

/// A copy of a server's files at one moment.
#[derive(Debug, Clone)]
pub struct Backup(PathBuf);

/// How a server comes back from a [`Backup`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restored {
    /// The files are put back: same timeline, earlier position in the log.
    SameTimeline,
    /// By recovery and promotion, as from an archive or on a standby: the next timeline.
    NextTimeline,
}

impl Postgres {
    /// Starts a server of its own, empty but for the role.
    ///
    /// # Panics
    /// When PostgreSQL is not installed or does not get ready.
    pub fn start() -> Self {
        Self::start_with(&[], &[])
    }

    /// As [`Self::start`], with further settings (`name=value`) and variables of its environment (a false clock, say).
    pub fn start_with(settings: &[&str], env: &[(String, String)]) -> Self {
        Self::start_in(scratch::folder("postgres"), settings, env)
    }

    /// As [`Self::start_with`], its files in that folder: a small disk, say.
    pub fn start_in(folder: PathBuf, settings: &[&str], env: &[(String, String)]) -> Self {
        scratch::copy(seed(), &folder.join("data"));
        owned_by_postgres(&folder);
        let settings = SETTINGS.iter().chain(settings).map(|&setting| setting.to_owned()).collect();
        let server = Self {
            folder,
            port: free_port(),
            settings,
            env: env.to_vec(),
            process: Mutex::new(None),
            templates: tokio::sync::Mutex::default(),
        };
        server.start_again();
        server.psql(&format!("create role {ROLE} login"));
        server
    }

    /// The server that all tests share which do not break it.
    ///
    /// # Panics
    /// When PostgreSQL is not installed or does not get ready.
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<Postgres> = OnceLock::new();
        SHARED.get_or_init(|| match lent(LENT) {
            Some(port) => Self {
                folder: PathBuf::new(),
                port,
                settings: Vec::new(),
                env: Vec::new(),
                process: Mutex::new(None),
                templates: tokio::sync::Mutex::default(),
            },
            None => Self::start(),
        })
    }

    fn process(&self) -> MutexGuard<'_, Option<Process>> {
        self.process.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The superuser's address of one of its databases.
    pub fn superuser_url(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// Runs statements as superuser through `psql`, blocking: for setting things up.
    ///
    /// # Panics
    /// When they fail.
    pub fn psql(&self, statements: &str) -> String {
        Launch::new("psql", programs().join("psql"))
            .args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-c", statements])
            .arg(self.superuser_url("postgres"))
            .finish()
            .ok()
            .stdout
    }

    /// A new, empty database that belongs to the product's role.
    pub async fn fresh_database(&self) -> Database {
        self.create("template1").await
    }

    /// A new database made from a template, which is made first where it is new: an empty database that `migrate` is
    /// given. `name` tells templates apart.
    ///
    /// # Panics
    /// When the template is still connected to after `migrate` has ended.
    pub async fn database_from(&self, name: &str, migrate: impl AsyncFnOnce(&Database)) -> Database {
        let template = format!("template_{name}_{}", std::process::id());
        let mut ready = self.templates.lock().await;
        if !ready.contains(&template) {
            let database = self.create("template1").await;
            migrate(&database).await;
            self.admin(&format!("alter database {} rename to {template}", database.name())).await;
            ready.push(template.clone());
        }
        // Under the lock: the server refuses a template that anyone else is connected to.
        self.create(&template).await
    }

    async fn create(&self, template: &str) -> Database {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("t{}_{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        self.admin(&format!("create database {name} owner {ROLE} template {template}")).await;
        Database::new(name, self.port)
    }

    async fn admin(&self, statement: &str) {
        let mut connection = PgConnection::connect(&self.superuser_url("postgres")).await.expect("the server answers");
        sqlx::raw_sql(AssertSqlSafe(statement.to_owned()))
            .execute(&mut connection)
            .await
            .unwrap_or_else(|error| panic!("{statement}: {error}"));
        connection.close().await.ok();
    }

    /// SIGKILL to the server: sessions break off, the log is replayed at the next start.
    pub fn kill(&self) {
        if let Some(process) = self.process().take() {
            process.kill();
        }
        // The sessions' processes notice their parent's end by themselves; a start before that is refused by the server.
    }

    /// A fast stop: sessions are ended, everything is written.
    pub fn stop(&self) {
        if let Some(process) = self.process().take() {
            process.signal(Signal::INT);
            process.wait(STOPPED_WITHIN);
        }
    }

    /// SIGSTOP to the postmaster alone: no new session is served, those that are open go on.
    pub fn pause_postmaster(&self) {
        self.process().as_ref().expect("the server runs").stop();
    }

    /// SIGCONT to the postmaster.
    pub fn resume_postmaster(&self) {
        self.process().as_ref().expect("the server runs").cont();
    }

    /// Starts it on what files there are, and waits until it takes sessions and is no longer recovering.
    ///
    /// # Panics
    /// When it does not get ready.
    pub fn start_again(&self) {
        eventually_blocking(READY_WITHIN, "the server is ready", || {
            let mut process = self.process();
            match &*process {
                Some(running) if running.is_running() => self.answers().then_some(()),
                // A killed server's sessions may hold its memory for a moment more: it is started again.
                Some(ended) if !ended.log().contains("still in use") && !ended.log().contains("in use by") => {
                    panic!("PostgreSQL has ended:\n{}", ended.log_tail(40))
                }
                Some(_) | None => {
                    *process = Some(self.launch());
                    None
                }
            }
        });
    }

    fn launch(&self) -> Process {
        let mut launch = Launch::new("postgres", programs().join("postgres"))
            .args(["-D", &self.folder.join("data").to_string_lossy(), "-p", &self.port.to_string()])
            .args(["-k", &self.folder.to_string_lossy()]);
        for setting in &self.settings {
            launch = launch.args(["-c", setting]);
        }
        launch.envs(&self.env).folder(&self.folder).user(OS_USER).ends_at_once_by_quit().start()
    }

    fn answers(&self) -> bool {
        TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_ok()
            && Launch::new("psql", programs().join("psql"))
                .args(["-X", "-A", "-t", "-c", "select pg_is_in_recovery()"])
                .arg(self.superuser_url("postgres"))
                .finish()
                .stdout
                .starts_with('f')
    }

    /// Whether it runs; it ends by itself where it cannot write its log.
    pub fn is_running(&self) -> bool {
        self.process().as_ref().is_some_and(Process::is_running)
    }

    /// Stops it and starts it again.
    pub fn restart(&self) {
        self.stop();
        self.start_again();
    }

    /// Copies its files; it is stopped for that and started again.
    pub fn backup(&self) -> Backup {
        let copy = scratch::folder("backup").join("data");
        self.stop();
        scratch::copy(&self.folder.join("data"), &copy);
        self.start_again();
        Backup(copy)
    }

    /// Sets it back to an earlier copy, losing what was written since.
    pub fn restore(&self, backup: &Backup, how: Restored) {
        self.stop();
        let data = self.folder.join("data");
        scratch::remove(&data);
        scratch::copy(&backup.0, &data);
        if how == Restored::NextTimeline {
            fs::write(data.join("recovery.signal"), "").expect("the folder is there");
            let automatic = data.join("postgresql.auto.conf");
            let before = fs::read_to_string(&automatic).expect("initdb made it");
            fs::write(&automatic, before + "restore_command = '/bin/false'\n").expect("the folder is there");
            owned_by_postgres(&data);
        }
        self.start_again();
    }

    /// Starts a pooler in transaction mode in front of the server.
    ///
    /// # Panics
    /// When pgbouncer is not installed or does not get ready.
    pub fn pooler(&self) -> Pooler {
        let folder = scratch::folder("pgbouncer");
        let port = free_port();
        let users = folder.join("users.txt");
        fs::write(&users, format!("\"{ROLE}\" \"\"\n\"postgres\" \"\"\n")).expect("the folder is new");
        let configuration = folder.join("pgbouncer.ini");
        let text = format!(
            "[databases]\n* = host=127.0.0.1 port={}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
             unix_socket_dir =\nauth_type = trust\nauth_file = {}\npool_mode = transaction\nmax_client_conn = 200\n\
             ignore_startup_parameters = extra_float_digits\n",
            self.port,
            users.display()
        );
        fs::write(&configuration, text).expect("the folder is new");
        owned_by_postgres(&folder);
        let process = Launch::new("pgbouncer", "pgbouncer").arg(&configuration).folder(&folder).user(OS_USER).start();
        eventually_blocking(READY_WITHIN, "pgbouncer listens", || {
            assert!(process.is_running(), "pgbouncer has ended:\n{}", process.log_tail(40));
            TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok().then_some(())
        });
        Pooler { port, _process: process }
    }
}

/// A pgbouncer in transaction mode; gone when dropped.
#[derive(Debug)]
pub struct Pooler {
    port: u16,
    _process: Process,
}

impl Pooler {
    /// Its port: used in place of the server's.
    pub fn port(&self) -> u16 {
        self.port
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_test_has_a_database_of_its_own_under_a_role_without_superuser() {
        let (one, other) = (Postgres::shared().fresh_database().await, Postgres::shared().fresh_database().await);
        let mut connection = one.connect().await;
        sqlx::raw_sql("create schema mine; create table mine.t (n int); insert into mine.t values (7)")
            .execute(&mut connection)
            .await
            .expect("the owner may create");
        assert_eq!(one.value::<i32>("select n from mine.t").await, 7);
        assert_eq!(other.value::<i64>("select count(*) from pg_namespace where nspname = 'mine'").await, 0);
        let query = format!("select rolsuper from pg_roles where rolname = '{ROLE}'");
        assert!(!one.value::<bool>(&query).await);
        assert_eq!(one.sessions().await, 1);
        connection.close().await.expect("the server answers");
    }

    #[tokio::test]
    async fn a_template_is_migrated_once() {
        let mut times = 0;
        let server = Postgres::start();
        for _ in 0..3 {
            let database = server
                .database_from("once", async |empty| {
                    times += 1;
                    empty.execute("create table migrated (n int); insert into migrated values (1)").await;
                })
                .await;
            assert_eq!(database.value::<i32>("select n from migrated").await, 1);
        }
        assert_eq!(times, 1);
    }

    #[tokio::test]
    async fn a_server_is_killed_and_set_back_on_either_timeline() {
        let server = Postgres::start();
        let database = server.fresh_database().await;
        database.execute("create table t (n int); insert into t values (1)").await;
        server.kill();
        assert!(database.try_rows::<(i32,)>("select n from t").await.is_err());
        server.start_again();
        let backup = server.backup();
        let timeline = "select left(pg_walfile_name(pg_current_wal_insert_lsn()), 8)";
        let before: String = database.value(timeline).await;
        database.execute("insert into t values (2)").await;
        server.restore(&backup, Restored::SameTimeline);
        assert_eq!(database.rows::<(i32,)>("select n from t").await, [(1,)]);
        assert_eq!(database.value::<String>(timeline).await, before);
        server.restore(&backup, Restored::NextTimeline);
        assert_eq!(database.rows::<(i32,)>("select n from t").await, [(1,)]);
        assert!(database.value::<String>(timeline).await > before);
    }

    #[tokio::test]
    async fn a_pooler_in_transaction_mode_stands_in_front() {
        let server = Postgres::shared();
        let database = server.fresh_database().await;
        let pooler = server.pooler();
        let mut connection = PgConnection::connect(&database.url_through(pooler.port())).await.expect("it pools");
        let one: (i32,) = sqlx::query_as("select 1").fetch_one(&mut connection).await.expect("it answers");
        assert_eq!(one.0, 1);
    }
}

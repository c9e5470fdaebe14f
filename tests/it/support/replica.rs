//! One replica: a process of the product's own binary with a configuration of its own, perhaps behind proxies, seen as an
//! operator sees it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use serde_json::Value;

use super::metrics::Metrics;
use super::ports::free_port;
use super::process::{Finished, Launch, Process};
use super::proxy::Proxy;
use super::scratch;
use super::wait::eventually;

/// The product.
pub const BINARY: &str = env!("CARGO_BIN_EXE_bursar");
/// One question to a replica's port.
const ASK: Duration = Duration::from_secs(2);

/// Keys of a configuration: section and key to a value as TOML writes it (`"5s"` with its quotes).
pub type Keys = BTreeMap<(String, String), String>;

/// A configuration file's text: the top-level keys (of section ""), then each section.
pub fn configuration(keys: &Keys) -> String {
    let mut text = String::new();
    let mut current = "";
    for ((section, key), value) in keys {
        if section != current {
            writeln!(text, "\n[{section}]").expect("a String takes all");
            current = section;
        }
        writeln!(text, "{key} = {value}").expect("a String takes all");
    }
    text
}

/// Sets a key.
pub fn set(keys: &mut Keys, section: &str, key: &str, value: impl Into<String>) {
    keys.insert((section.to_owned(), key.to_owned()), value.into());
}

/// TOML's form of a string.
pub fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// A replica, running or not; gone when dropped.
#[derive(Debug)]
pub struct Replica {
    id: String,
    folder: PathBuf,
    http_port: u16,
    keys: Mutex<Keys>,
    env: Mutex<BTreeMap<String, String>>,
    etcd: Vec<Proxy>,
    postgres: Option<Proxy>,
    process: Mutex<Option<Process>>,
    client: reqwest::Client,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl Replica {
    /// A replica with these keys beside those that are its own (port, schedule file, id); not started.
    pub fn new(id: &str, mut keys: Keys, schedule: &str, etcd: Vec<Proxy>, postgres: Option<Proxy>) -> Self {
        let folder = scratch::folder(&format!("replica-{id}"));
        let http_port = free_port();
        set(&mut keys, "", "schedule", quoted(&folder.join("schedule.toml").to_string_lossy()));
        set(&mut keys, "http", "listen", quoted(&format!("127.0.0.1:{http_port}")));
        set(&mut keys, "replica", "id", quoted(id));
        // A connection that outlives the runtime it was made on would hang; each test has its own.
        let client = reqwest::Client::builder().timeout(ASK).pool_max_idle_per_host(0).no_proxy();
        let replica = Self {
            id: id.to_owned(),
            folder,
            http_port,
            keys: Mutex::new(keys),
            env: Mutex::default(),
            etcd,
            postgres,
            process: Mutex::new(None),
            client: client.build().expect("a plain client can be built"),
        };
        replica.set_env("BURSAR_CHAOS_DIR", &replica.folder.to_string_lossy());
        replica.write_configuration();
        replica.write_schedule(schedule);
        replica
    }

    /// Another with the same keys and schedule, but for its id and port, and nothing between it and its servers: for
    /// commands while this one's lines are cut.
    pub fn beside(&self, id: &str, coordinator: &[String], database: &str) -> Self {
        let mut keys = locked(&self.keys).clone();
        let endpoints: Vec<String> = coordinator.iter().map(|endpoint| quoted(endpoint)).collect();
        set(&mut keys, "coordinator", "endpoints", format!("[{}]", endpoints.join(", ")));
        set(&mut keys, "database", "url", quoted(database));
        let schedule = fs::read_to_string(self.schedule()).expect("it was written");
        Self::new(id, keys, &schedule, Vec::new(), None)
    }

    /// Its id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Its HTTP port.
    pub fn http_port(&self) -> u16 {
        self.http_port
    }

    /// Its configuration file.
    pub fn config(&self) -> PathBuf {
        self.folder.join("bursar.toml")
    }

    /// Its schedule file.
    pub fn schedule(&self) -> PathBuf {
        self.folder.join("schedule.toml")
    }

    fn write_configuration(&self) {
        fs::write(self.config(), configuration(&locked(&self.keys))).expect("the folder is ours");
    }

    /// Changes a key of its configuration, for its next start and for commands.
    pub fn set(&self, section: &str, key: &str, value: &str) {
        set(&mut locked(&self.keys), section, key, value);
        self.write_configuration();
    }

    /// Sets a variable of its environment, for its next start and for commands.
    pub fn set_env(&self, key: &str, value: &str) {
        locked(&self.env).insert(key.to_owned(), value.to_owned());
    }

    /// Takes a variable away again.
    pub fn unset_env(&self, key: &str) {
        locked(&self.env).remove(key);
    }

    /// Sets its failpoints for its next start, as `name=action[@n]`, separated by `;`.
    pub fn set_chaos(&self, points: &str) {
        self.set_env("BURSAR_CHAOS", points);
    }

    /// Whether it has reached a failpoint that is set to `pause` or `stop`.
    pub fn has_hit(&self, point: &str) -> bool {
        self.folder.join(format!("{point}.hit")).exists()
    }

    /// Waits until it has reached a failpoint that is set to `pause` or `stop`.
    ///
    /// # Panics
    /// When it does not in time.
    pub async fn wait_hit(&self, point: &str, within: Duration) {
        eventually(within, &format!("{} reaches {point}", self.id), async || self.has_hit(point).then_some(())).await;
    }

    /// Lets it go on from a failpoint that is set to `pause`, this time and from now on.
    pub fn release(&self, point: &str) {
        fs::write(self.folder.join(format!("{point}.go")), "").expect("the folder is ours");
    }

    /// Puts another schedule in place, at once, as a deployment does.
    pub fn write_schedule(&self, text: &str) {
        replace(&self.schedule(), text);
    }

    /// The product with its configuration.
    fn launch(&self, name: &str) -> Launch {
        let mut launch = Launch::new(name, BINARY).folder(&self.folder);
        for (key, value) in &*locked(&self.env) {
            launch = launch.env(key, value);
        }
        launch
    }

    /// Starts it; does not wait for anything.
    ///
    /// # Panics
    /// When it runs already.
    pub fn start(&self) {
        let mut process = locked(&self.process);
        assert!(process.as_ref().is_none_or(|process| !process.is_running()), "{} runs already", self.id);
        for entry in fs::read_dir(&self.folder).expect("the folder is ours").flatten() {
            // What failpoints of an earlier life have left.
            if entry.path().extension().is_some_and(|extension| extension == "hit" || extension == "go") {
                fs::remove_file(entry.path()).expect("the folder is ours");
            }
        }
        let launch = self.launch(&self.id).args(["run", "--config"]).arg(self.config());
        *process = Some(launch.start());
    }

    /// Runs a command of the product against its configuration, to the end.
    pub fn command(&self, args: &[&str]) -> Finished {
        let name = format!("bursar-{}", args.first().unwrap_or(&"nothing"));
        self.launch(&name).arg("--config").arg(self.config()).args(args).finish()
    }

    /// Begins a command of the product against its configuration; it goes on by itself, its output in its log.
    pub fn begin(&self, args: &[&str]) -> Process {
        let name = format!("bursar-{}", args.first().unwrap_or(&"nothing"));
        self.launch(&name).arg("--config").arg(self.config()).args(args).start()
    }

    fn with<T>(&self, act: impl FnOnce(&Process) -> T) -> T {
        act(locked(&self.process).as_ref().unwrap_or_else(|| panic!("{} was never started", self.id)))
    }

    /// SIGSTOP.
    pub fn stop(&self) {
        self.with(Process::stop);
    }

    /// SIGCONT.
    pub fn cont(&self) {
        self.with(Process::cont);
    }

    /// SIGTERM.
    pub fn term(&self) {
        self.with(Process::term);
    }

    /// SIGKILL, and waits until it is gone.
    pub fn kill(&self) {
        self.with(Process::kill);
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// When it does not end in time.
    pub fn wait_end(&self, within: Duration) -> ExitStatus {
        self.with(|process| process.wait(within))
    }

    /// Whether it runs (a stopped one does).
    pub fn is_running(&self) -> bool {
        locked(&self.process).as_ref().is_some_and(Process::is_running)
    }

    /// Its process id.
    pub fn pid(&self) -> i32 {
        self.with(Process::pid)
    }

    /// How many threads it has.
    pub fn threads(&self) -> usize {
        self.with(Process::threads)
    }

    /// How many descriptors it has open.
    pub fn descriptors(&self) -> usize {
        self.with(Process::descriptors)
    }

    /// Its resident memory in kilobytes.
    pub fn resident_kb(&self) -> u64 {
        self.with(Process::resident_kb)
    }

    /// What it has logged since its last start.
    pub fn log(&self) -> String {
        self.with(Process::log)
    }

    /// Its line to that member of etcd.
    ///
    /// # Panics
    /// Where it has no proxies.
    pub fn etcd_line(&self, member: usize) -> &Proxy {
        self.etcd.get(member).expect("the cluster was set up behind proxies")
    }

    /// Its lines to all members of etcd.
    pub fn etcd_lines(&self) -> &[Proxy] {
        &self.etcd
    }

    /// Its line to the database.
    ///
    /// # Panics
    /// Where it has no proxies.
    pub fn database_line(&self) -> &Proxy {
        self.postgres.as_ref().expect("the cluster was set up behind proxies")
    }

    /// Cuts it from etcd, all members.
    pub fn cut_from_etcd(&self) {
        assert!(!self.etcd.is_empty(), "the cluster was set up behind proxies");
        self.etcd.iter().for_each(Proxy::cut);
    }

    /// Cuts it from the database.
    pub fn cut_from_database(&self) {
        self.database_line().cut();
    }

    /// Makes all its lines whole.
    pub fn heal(&self) {
        self.etcd.iter().chain(&self.postgres).for_each(Proxy::heal);
    }

    async fn get(&self, path: &str) -> Option<(u16, String)> {
        let answer = self.client.get(format!("http://127.0.0.1:{}{path}", self.http_port)).send().await.ok()?;
        let status = answer.status().as_u16();
        Some((status, answer.text().await.ok()?))
    }

    /// A scrape; `None` where it does not answer.
    ///
    /// # Panics
    /// When it answers something else than metrics.
    pub async fn metrics(&self) -> Option<Metrics> {
        let (status, text) = self.get("/metrics").await?;
        assert_eq!(status, 200, "{}: /metrics: {text}", self.id);
        Some(Metrics::parse(&text).unwrap_or_else(|error| panic!("{}: {error}", self.id)))
    }

    /// One value of a scrape; `None` where it does not answer or has no such series.
    pub async fn metric(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        self.metrics().await?.value(name, labels)
    }

    /// `/status.json`; `None` where it does not answer.
    ///
    /// # Panics
    /// When it answers something else than JSON.
    pub async fn status(&self) -> Option<Value> {
        let (_, text) = self.get("/status.json").await?;
        Some(serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}: {text}", self.id)))
    }

    /// The HTTP status and text of `/readyz`; `None` where it does not answer.
    pub async fn readyz(&self) -> Option<(u16, String)> {
        self.get("/readyz").await
    }

    /// The HTTP status and text of `/livez`; `None` where it does not answer.
    pub async fn livez(&self) -> Option<(u16, String)> {
        self.get("/livez").await
    }

    /// Whether it says, at this scrape, that it leads the election.
    pub async fn leads(&self, election: &str) -> bool {
        self.metric("bursar_leader", &[("election", election)]).await.is_some_and(|value| value > 0.0)
    }

    /// Waits until it answers that it is ready.
    ///
    /// # Panics
    /// When it ends, or is not ready in time.
    pub async fn wait_ready(&self, within: Duration) {
        eventually(within, &format!("{} is ready", self.id), async || {
            self.assert_running();
            (self.readyz().await?.0 == 200).then_some(())
        })
        .await;
    }

    /// Sees that it has not ended by itself.
    ///
    /// # Panics
    /// Where it has, with the end of its log.
    pub fn assert_running(&self) {
        self.with(|process| {
            if let Some(status) = process.ended() {
                panic!("{} has ended ({status}):\n{}", self.id, process.log_tail(40));
            }
        });
    }

    /// Asks it to end, where it runs: SIGCONT and one SIGTERM (a second one ends a replica at once).
    pub fn ask_to_end(&self) {
        if let Some(process) = locked(&self.process).as_ref().filter(|process| process.is_running()) {
            process.cont();
            process.term();
        }
    }

    /// How it ended, with SIGKILL where it has not after the time; `None` where it was never started.
    pub fn end_within(&self, within: Duration) -> Option<ExitStatus> {
        let process = locked(&self.process);
        let process = process.as_ref()?;
        let until = bursar::clock::boottime() + within;
        while bursar::clock::boottime() < until {
            if let Some(status) = process.ended() {
                return Some(status);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Some(process.kill())
    }
}

/// Puts a file in another's place in one step.
pub fn replace(path: &Path, text: &str) {
    let new = path.with_extension("new");
    fs::write(&new, text).expect("the folder is ours");
    fs::rename(&new, path).expect("the folder is ours");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_configuration_has_its_top_level_keys_first() {
        let mut keys = Keys::new();
        set(&mut keys, "http", "listen", quoted("127.0.0.1:1"));
        set(&mut keys, "", "schedule", quoted("a \"b\"\\"));
        set(&mut keys, "coordinator", "endpoints", "[]");
        set(&mut keys, "http", "a", "1");
        let text = "schedule = \"a \\\"b\\\"\\\\\"\n\n[coordinator]\nendpoints = []\n\n[http]\na = 1\nlisten = \"127.0.0.1:1\"\n";
        assert_eq!(configuration(&keys), text);
        toml::from_str::<toml::Table>(&configuration(&keys)).expect("it is TOML");
    }
}

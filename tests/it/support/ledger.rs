//! Schedules of ledger jobs, and what an operator does with them through the product's own commands: import, trigger, look.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::cluster::Cluster;
use super::process::Finished;
use super::wait::eventually;

/// Fires on New Year's Day: a job with it runs when it is triggered.
const HARDLY_EVER: &str = "0 0 1 1 *";
/// A run of some thousand units on a busy machine.
const ENDED_WITHIN: Duration = Duration::from_mins(2);

/// One job of a schedule whose handler is `ledger`.
#[derive(Debug, Clone)]
pub struct LedgerJob {
    name: String,
    cron: String,
    keys: String,
    batch: (u32, u32),
    ledger: String,
    payout: BTreeMap<String, String>,
    backoff: Option<String>,
}

impl LedgerJob {
    /// A job that takes every entry and runs when it is triggered.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            cron: HARDLY_EVER.to_owned(),
            keys: String::new(),
            batch: (1000, 2),
            ledger: String::new(),
            payout: BTreeMap::new(),
            backoff: None,
        }
    }

    /// When it fires.
    #[must_use]
    pub fn cron(mut self, cron: &str) -> Self {
        cron.clone_into(&mut self.cron);
        self
    }

    /// Units of a batch, and batches at a time.
    #[must_use]
    pub fn batch(mut self, size: u32, concurrency: u32) -> Self {
        self.batch = (size, concurrency);
        self
    }

    /// A key of the job itself; the value as TOML writes it.
    #[must_use]
    pub fn key(mut self, key: &str, value: &str) -> Self {
        writeln!(self.keys, "{key} = {value}").expect("a String takes all");
        self
    }

    /// A key of the ledger's table; the value as TOML writes it.
    #[must_use]
    pub fn ledger(mut self, key: &str, value: &str) -> Self {
        writeln!(self.ledger, "{key} = {value}").expect("a String takes all");
        self
    }

    /// Sends its payouts to this address, with short waits between tries.
    #[must_use]
    pub fn paying(self, url: &str) -> Self {
        let paying = self.payout("kind", "\"http\"").payout("url", &format!("\"{url}\""));
        paying.backoff("50ms..200ms")
    }

    /// A key of the payouts' table, in place of what it was; the value as TOML writes it.
    #[must_use]
    pub fn payout(mut self, key: &str, value: &str) -> Self {
        self.payout.insert(key.to_owned(), value.to_owned());
        self
    }

    /// The waits between tries.
    #[must_use]
    pub fn backoff(mut self, bounds: &str) -> Self {
        self.backoff = Some(bounds.to_owned());
        self
    }

    /// Its part of a schedule file.
    pub fn text(&self) -> String {
        let Self { name, cron, keys, batch: (size, concurrency), ledger, payout, backoff } = self;
        let backoff =
            backoff.as_ref().map_or_else(String::new, |bounds| format!("[job.retry]\nbackoff = \"{bounds}\"\n"));
        let payout = payout.iter().fold(String::new(), |lines, (key, value)| lines + &format!("{key} = {value}\n"));
        let payout = if payout.is_empty() { payout } else { format!("[job.payout]\n{payout}\n") };
        format!(
            "[[job]]\nname = \"{name}\"\ncron = \"{cron}\"\nhandler = \"ledger\"\n{keys}\
             [job.batch]\nsize = {size}\nconcurrency = {concurrency}\n[job.ledger]\n{ledger}\n{payout}{backoff}"
        )
    }
}

impl Cluster {
    /// Brings a file in through the command, which answers in JSON.
    pub fn import_file(&self, file: &Path, source: &str) -> Finished {
        self.command(&["import", &file.to_string_lossy(), "--source", source, "--json"])
    }

    /// Has the leader open a run of a job, waits until it has ended, and gives its id.
    ///
    /// # Panics
    /// When it is not opened or does not end.
    pub async fn run_now(&self, job: &str) -> i64 {
        let run = self.open_now(job);
        self.wait_run_ended(run).await;
        run
    }

    /// Has the leader open a run of a job, and gives its id.
    ///
    /// # Panics
    /// When it is not opened.
    pub fn open_now(&self, job: &str) -> i64 {
        let opened = self.trigger(job).json();
        opened["summary"]["id"].as_i64().unwrap_or_else(|| panic!("a run: {opened}"))
    }

    /// Waits until a run has ended.
    ///
    /// # Panics
    /// When it does not.
    pub async fn wait_run_ended(&self, run: i64) {
        let query = format!("select count(*) from bursar.run where id = {run} and finished_at is not null");
        eventually(ENDED_WITHIN, &format!("run {run} ends"), async || (self.number(&query).await == 1).then_some(()))
            .await;
    }

    /// What `runs show` says of a run.
    pub fn run_shown(&self, run: i64) -> Value {
        self.command(&["runs", "show", &run.to_string(), "--json"]).ok().json()
    }

    /// What `units show` says of a unit.
    pub fn unit_shown(&self, run: i64, key: &str) -> Value {
        self.command(&["units", "show", &run.to_string(), key, "--json"]).ok().json()
    }

    /// Net and state of every unit of a run, by key, as `units list` says them.
    ///
    /// # Panics
    /// When it lists something else.
    pub fn units_shown(&self, run: i64) -> std::collections::BTreeMap<String, (String, String)> {
        let run = run.to_string();
        let listed = self.command(&["units", "list", "--run", &run, "--limit", "10000", "--json"]).ok().json();
        let text = |unit: &Value, field: &str| unit[field].as_str().unwrap_or_default().to_owned();
        let units = listed.as_array().expect("a list").iter();
        units.map(|unit| (text(unit, "key"), (text(unit, "net"), text(unit, "state")))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_toml_with_its_tables_last() {
        let job = LedgerJob::new("daily")
            .key("misfire", "\"run_all\"")
            .batch(5, 2)
            .ledger("sources", "[\"psp\"]")
            .paying("http://bank/");
        let table: toml::Table = toml::from_str(&job.text()).expect("it is TOML");
        let job = &table["job"][0];
        assert_eq!(job["misfire"].as_str(), Some("run_all"));
        assert_eq!(job["batch"]["size"].as_integer(), Some(5));
        assert_eq!(job["ledger"]["sources"][0].as_str(), Some("psp"));
        assert_eq!(job["payout"]["url"].as_str(), Some("http://bank/"));
    }
}

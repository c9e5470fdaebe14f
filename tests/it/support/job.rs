//! Schedules of probes, and the file in which their calls of the outside are written down.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::replica::quoted;
use super::scratch;

/// Fires on New Year's Day: a job with it runs when it is triggered.
const HARDLY_EVER: &str = "0 0 1 1 *";
/// Fires every second.
pub const EVERY_SECOND: &str = "* * * * * *";

/// One job of a schedule whose handler is `probe`.
#[derive(Debug, Clone)]
pub struct Job {
    name: String,
    cron: String,
    batch: (u32, u32),
    retry: Option<(u32, String)>,
    probe: Vec<(String, String)>,
}

impl Job {
    /// A job with so many units a run, settled in the store, that runs when it is triggered.
    pub fn probe(name: &str, units: u32) -> Self {
        let probe = vec![("units".to_owned(), units.to_string())];
        Self { name: name.to_owned(), cron: HARDLY_EVER.to_owned(), batch: (10, 1), retry: None, probe }
    }

    /// As [`Self::probe`], but each unit is a call of the outside, written down in `calls`; an unknown outcome may be tried
    /// again.
    pub fn calling(name: &str, units: u32, calls: &Calls) -> Self {
        Self::probe(name, units)
            .set("shape", &quoted("outside"))
            .set("idempotent", "true")
            .set("log_file", &quoted(&calls.0.to_string_lossy()))
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

    /// Attempts, and the waits between them.
    #[must_use]
    pub fn retry(mut self, attempts: u32, backoff: &str) -> Self {
        self.retry = Some((attempts, backoff.to_owned()));
        self
    }

    /// A key of the probe's table, in place of what it was; the value as TOML writes it.
    #[must_use]
    pub fn set(mut self, key: &str, value: &str) -> Self {
        self.probe.retain(|(set, _)| set != key);
        self.probe.push((key.to_owned(), value.to_owned()));
        self
    }

    fn text(&self) -> String {
        let Self { name, cron, batch: (size, concurrency), retry, probe } = self;
        let retry = retry.as_ref().map_or_else(String::new, |(attempts, backoff)| {
            format!("[job.retry]\nmax_attempts = {attempts}\nbackoff = \"{backoff}\"\n")
        });
        let probe: Vec<String> = probe.iter().map(|(key, value)| format!("{key} = {value}")).collect();
        let probe = probe.join("\n");
        format!(
            "[[job]]\nname = \"{name}\"\ncron = \"{cron}\"\nhandler = \"probe\"\n\
             [job.batch]\nsize = {size}\nconcurrency = {concurrency}\n{retry}[job.probe]\n{probe}\n\n"
        )
    }
}

/// A schedule file's text.
pub fn schedule(jobs: &[Job]) -> String {
    jobs.iter().map(Job::text).collect()
}

/// The file in which outside probes write their calls down: what a receiver would have seen.
#[derive(Debug, Clone)]
pub struct Calls(PathBuf);

impl Calls {
    /// None yet.
    pub fn none_yet() -> Self {
        Self(scratch::folder("calls").join("calls"))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Every call in its order: the unit's key, and the term under which it was made.
    ///
    /// # Panics
    /// When a line is none.
    pub fn all(&self) -> Vec<(String, i64)> {
        let text = fs::read_to_string(&self.0).unwrap_or_default();
        let call = |line: &str| {
            let mut words = line.split(' ');
            Some((words.next()?.to_owned(), words.next()?.parse().ok()?))
        };
        text.lines().map(|line| call(line).unwrap_or_else(|| panic!("no call: {line:?}"))).collect()
    }

    /// The idempotency keys of all calls.
    ///
    /// # Panics
    /// When a line is none.
    pub fn idempotency_keys(&self) -> BTreeSet<String> {
        let text = fs::read_to_string(&self.0).unwrap_or_default();
        let key = |line: &str| line.split(' ').nth(3).unwrap_or_else(|| panic!("no call: {line:?}")).to_owned();
        text.lines().map(key).collect()
    }

    /// How often each key was called.
    pub fn by_key(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for (key, _) in self.all() {
            *counts.entry(key).or_insert(0) += 1;
        }
        counts
    }

    /// Sees that no call was made under a lower term than one before it.
    ///
    /// # Panics
    /// When one was.
    pub fn assert_terms_only_rise(&self) {
        let all = self.all();
        for pair in all.windows(2) {
            assert!(pair[0].1 <= pair[1].1, "a call of a lower term came later: {pair:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_is_toml_with_its_jobs_in_order() {
        let calls = Calls::none_yet();
        let jobs = [Job::probe("one", 3), Job::calling("two", 5, &calls).batch(4, 2).retry(3, "1s..2s")];
        let table: toml::Table = toml::from_str(&schedule(&jobs)).expect("it is TOML");
        let jobs = table["job"].as_array().expect("an array of tables");
        assert_eq!(jobs[0]["probe"]["units"].as_integer(), Some(3));
        assert_eq!(jobs[1]["batch"]["concurrency"].as_integer(), Some(2));
        assert_eq!(jobs[1]["probe"]["shape"].as_str(), Some("outside"));
        assert_eq!(jobs[1]["retry"]["backoff"].as_str(), Some("1s..2s"));
    }

    #[test]
    fn calls_are_read_in_their_order() {
        let calls = Calls::none_yet();
        assert_eq!(calls.all(), []);
        fs::write(calls.path(), "a 1 x\nb 1 x\na 2 y\n").expect("the folder is ours");
        assert_eq!(calls.all(), [("a".to_owned(), 1), ("b".to_owned(), 1), ("a".to_owned(), 2)]);
        assert_eq!(calls.by_key()["a"], 2);
        calls.assert_terms_only_rise();
    }

    #[test]
    #[should_panic(expected = "a call of a lower term came later")]
    fn a_lower_term_after_a_higher_one_is_seen() {
        let calls = Calls::none_yet();
        fs::write(calls.path(), "a 2 x\nb 1 x\n").expect("the folder is ours");
        calls.assert_terms_only_rise();
    }
}

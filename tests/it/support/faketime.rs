//! A false wall clock for one process: it can be stepped while the process runs, and leaves its timers alone.
//!
//! Debian's `libfaketime`, preloaded. It works on replicas and on PostgreSQL; not on etcd, which asks the kernel itself.

use std::fs;
use std::path::PathBuf;

use super::scratch;

/// The clock of the processes that were started with [`Self::env`].
#[derive(Debug)]
pub struct FakeClock {
    library: PathBuf,
    offset: PathBuf,
}

impl FakeClock {
    /// A clock that is right until it is stepped.
    ///
    /// # Panics
    /// When faketime is not installed.
    pub fn new() -> Self {
        let folders = fs::read_dir("/usr/lib").expect("every system has it");
        let library = folders
            .flatten()
            .map(|entry| entry.path().join("faketime/libfaketimeMT.so.1"))
            .find(|path| path.exists())
            .expect("faketime is installed (scripts/test installs it)");
        let clock = Self { library, offset: scratch::folder("faketime").join("offset") };
        clock.set("+0s");
        clock
    }

    /// What to start a process with.
    pub fn env(&self) -> Vec<(String, String)> {
        [
            ("LD_PRELOAD", &*self.library.to_string_lossy()),
            ("FAKETIME_TIMESTAMP_FILE", &*self.offset.to_string_lossy()),
            ("FAKETIME_NO_CACHE", "1"),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into()
    }

    /// Steps the clock to an offset from the true one, like `+3600s` or `-3600s`; in force with the next look at it.
    pub fn set(&self, offset: &str) {
        let new = self.offset.with_extension("new");
        fs::write(&new, format!("{offset}\n")).expect("the folder is ours");
        fs::rename(&new, &self.offset).expect("the folder is ours");
    }
}

#[cfg(test)]
mod tests {
    use super::super::postgres::Postgres;
    use super::super::process::Launch;
    use super::*;

    fn seconds(clock: Option<&FakeClock>) -> i64 {
        let mut launch = Launch::new("date", "date").arg("+%s");
        if let Some(clock) = clock {
            launch = launch.envs(&clock.env());
        }
        launch.finish().ok().stdout.trim().parse().expect("seconds")
    }

    #[test]
    fn a_process_sees_the_step_and_the_others_do_not() {
        let clock = FakeClock::new();
        for (offset, seconds_off) in [("+0s", 0), ("+3600s", 3600), ("-7200s", -7200)] {
            clock.set(offset);
            let off = seconds(Some(&clock)) - seconds(None);
            assert!((off - seconds_off).abs() <= 5, "{offset}: {off}");
        }
    }

    #[tokio::test]
    async fn the_database_is_stepped_while_it_runs() {
        let clock = FakeClock::new();
        let server = Postgres::start_with(&[], &clock.env());
        let database = server.fresh_database().await;
        let now = "select extract(epoch from clock_timestamp())::bigint";
        let before: i64 = database.value(now).await;
        clock.set("+3600s");
        let after: i64 = database.value(now).await;
        assert!((3600..3700).contains(&(after - before)), "{before} {after}");
    }
}

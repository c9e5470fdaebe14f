//! The folder that the demo lives in: configuration, schedule, entries, store, logs. It is a working deployment: with
//! `--data` it is kept, and every command of bursar works on it.

use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use chrono::{DateTime, TimeDelta, Utc};

use super::samples;
use super::script::{LEASE, Pace, TICK_EVERY};
use crate::cli::error::CommandError;
use crate::clock;
use crate::hostproc::ProcessMark;

/// Units in one transaction: few, so that a run has a middle to be caught in.
const BATCH: u32 = 5;
/// The source of the entries.
pub(super) const SOURCE: &str = "demo";

/// The folder, removed when dropped unless it is to be kept.
#[derive(Debug)]
pub(super) struct World {
    folder: PathBuf,
    kept: bool,
}

fn io(what: &str, path: &Path) -> impl FnOnce(std::io::Error) -> CommandError {
    let what = format!("{what} {}", path.display());
    move |source| CommandError::Io { what, source }
}

impl World {
    /// Makes the folder, and all in it but the store.
    pub(super) fn make(data: Option<&Path>) -> Result<Self, CommandError> {
        let world = if let Some(folder) = data {
            fs::create_dir_all(folder).map_err(io("cannot make the folder", folder))?;
            let folder = folder.canonicalize().map_err(io("cannot find the folder", folder))?;
            Self { folder, kept: true }
        } else {
            let own = ProcessMark::own().map_err(io("cannot read", Path::new("/proc/self/stat")))?;
            remove_abandoned(&std::env::temp_dir());
            let folder = std::env::temp_dir().join(format!("{}{:016x}", prefix(&own), clock::random_u64()));
            // Nobody else's business, and a name that exists is somebody else's.
            fs::DirBuilder::new().mode(0o700).create(&folder).map_err(io("cannot make the folder", &folder))?;
            Self { folder, kept: false }
        };
        if world.path("bursar.db").exists() {
            return Err(CommandError::Refused(format!(
                "{} has a store already, and the demo breaks what leads on it: name another folder, or remove that file",
                world.folder.display()
            )));
        }
        let logs = world.path("logs");
        fs::create_dir_all(&logs).map_err(io("cannot make the folder", &logs))?;
        world.write("bursar.toml", &configuration())?;
        world.write("schedule.toml", &schedule())?;
        Ok(world)
    }

    /// Writes the entries, and answers their path.
    pub(super) fn entries(&self, first: DateTime<Utc>, pace: Pace) -> Result<PathBuf, CommandError> {
        let every = TimeDelta::from_std(TICK_EVERY).map_err(|error| CommandError::Internal(error.into()))?;
        let text = samples::csv(first, every, pace.waves, pace.entries).map_err(CommandError::Internal)?;
        self.write("entries.csv", &text)
    }

    fn write(&self, name: &str, text: &str) -> Result<PathBuf, CommandError> {
        let path = self.path(name);
        fs::write(&path, text).map_err(io("cannot write", &path))?;
        Ok(path)
    }

    /// A file of the folder.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) const fn is_kept(&self) -> bool {
        self.kept
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if !self.kept {
            // What cannot be removed stays in the system's temporary folder.
            let _left = fs::remove_dir_all(&self.folder);
        }
    }
}

/// How the folders of a demo's process are named.
fn prefix(mark: &ProcessMark) -> String {
    format!("bursar-demo-{}-{}-", mark.pid, mark.started)
}

/// Removes the folders of demos that were killed: nobody else knows of them.
fn remove_abandoned(place: &Path) {
    for found in fs::read_dir(place).into_iter().flatten().flatten() {
        let name = found.file_name();
        let pid =
            name.to_str().and_then(|name| name.strip_prefix("bursar-demo-")).and_then(|name| name.split_once('-'));
        let Some(Ok(pid)) = pid.map(|(pid, _)| pid.parse()) else { continue };
        let Ok(lives) = ProcessMark::of(pid) else { continue };
        let is_its_own = |mark: &ProcessMark| name.to_string_lossy().starts_with(&prefix(mark));
        if !lives.as_ref().is_some_and(is_its_own) {
            // Another user's stays.
            let _left = fs::remove_dir_all(found.path());
        }
    }
}

/// Each replica's id comes from its environment; port 0 asks the system for a free one.
fn configuration() -> String {
    format!(
        r#"# Made by `bursar demo`.
schedule = "schedule.toml"

[coordinator]
kind = "database"
lease_ttl = "{}s"

[database]
url = "sqlite://bursar.db"

[http]
listen = "127.0.0.1:0"

[log]
format = "text"
"#,
        LEASE.as_secs()
    )
}

fn schedule() -> String {
    format!(
        r#"# Made by `bursar demo`.
[[job]]
name = "payouts"
cron = "*/{} * * * * *"
timezone = "UTC"
handler = "ledger"
[job.batch]
size = {BATCH}
concurrency = 1
[job.ledger]
sources = ["{SOURCE}"]
minimum_payout = {{ EUR = "1.00", GBP = "1.00", USD = "1.00" }}
[job.payout]
kind = "none"
"#,
        TICK_EVERY.as_secs()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ScheduleFile;

    #[test]
    fn a_temporary_folder_is_removed_and_a_named_one_is_kept() {
        let world = World::make(None).expect("made");
        let folder = world.folder().to_owned();
        assert!(folder.join("bursar.toml").is_file());
        drop(world);
        assert!(!folder.exists());
        let named = tempfile::tempdir().expect("a folder");
        let data = named.path().join("data");
        drop(World::make(Some(&data)).expect("made"));
        assert!(data.join("schedule.toml").is_file());
    }

    #[test]
    fn a_killed_demos_folder_is_removed_by_the_next_one() {
        let place = tempfile::tempdir().expect("a folder");
        let own = ProcessMark::own().expect("readable");
        let earlier = ProcessMark { started: own.started - 1, ..own.clone() };
        let folders = [format!("{}1", prefix(&own)), format!("{}1", prefix(&earlier)), "bursar-demo-mine".to_owned()];
        for folder in &folders {
            std::fs::create_dir_all(place.path().join(folder).join("logs")).expect("made");
        }
        remove_abandoned(place.path());
        assert_eq!(folders.map(|folder| place.path().join(folder).exists()), [true, false, true]);
    }

    #[test]
    fn a_folder_with_a_store_is_refused_and_left_alone() {
        let named = tempfile::tempdir().expect("a folder");
        std::fs::write(named.path().join("bursar.db"), "mine").expect("written");
        let error = World::make(Some(named.path())).expect_err("refused");
        assert!(error.to_string().contains("another folder"), "{error}");
        assert!(!named.path().join("bursar.toml").exists());
    }

    #[test]
    fn the_schedule_is_valid() {
        let world = World::make(None).expect("made");
        let schedule = ScheduleFile::load(&world.path("schedule.toml")).expect("valid");
        assert_eq!(schedule.jobs.len(), 1);
    }
}

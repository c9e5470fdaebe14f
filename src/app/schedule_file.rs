//! The schedule file, edited while running: read again every second, taken over where it is valid, refused where it is not.
//!
//! Its content is compared, not its time: a deployment that renames a file into place may keep times. A broken, empty or
//! missing file leaves the schedule in force as it is; it is logged once, counted, and shown.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::board::Board;
use crate::config::{Config, MOST_FILE_BYTES, ScheduleFile};
use crate::domain::ElectionName;
use crate::leadership::{LeadershipHandle, Report};
use crate::telemetry::ReloadOutcome;
use crate::tenure::ScheduleInForce;

/// How often the file is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A schedule as tenures take it.
pub(super) fn in_force(schedule: ScheduleFile) -> Arc<ScheduleInForce> {
    let fingerprint = schedule.fingerprint();
    Arc::new(ScheduleInForce { jobs: schedule.jobs, fingerprint })
}

/// What the task needs.
pub(super) struct Watcher {
    pub(super) config: Arc<Config>,
    pub(super) elections: Vec<ElectionName>,
    pub(super) schedule: watch::Sender<Arc<ScheduleInForce>>,
    pub(super) leadership: LeadershipHandle,
    pub(super) board: Arc<Board>,
}

/// The outcome of one reading, compared with the last one's.
type Reading = Result<ScheduleFile, String>;

/// A file that has jobs in force may not go missing: that is no way to take them all back.
fn read(config: &Config, has_jobs: bool) -> Reading {
    if has_jobs && !config.schedule.exists() {
        return Err(format!("{} is missing", config.schedule.display()));
    }
    config.load_schedule().map_err(|errors| errors.to_string())
}

/// What a look at the file found.
enum Look {
    /// The content that was read the last time.
    Same,
    /// Another one (where it can be read at all), and what it was read as.
    Read(Option<Vec<u8>>, Reading),
}

/// Reads the file again where its content is another: a schedule of many jobs takes a while. The content is read first:
/// should the file change in between, it is looked at once more.
fn look(config: &Config, has_jobs: bool, before: Option<&[u8]>) -> Look {
    let is_small = |file: &std::fs::Metadata| file.is_file() && file.len() <= MOST_FILE_BYTES;
    let file = std::fs::metadata(&config.schedule).ok().filter(is_small);
    let content = file.and_then(|_| std::fs::read(&config.schedule).ok());
    if content.is_some() && content.as_deref() == before {
        return Look::Same;
    }
    Look::Read(content, read(config, has_jobs))
}

impl Watcher {
    /// Looks until told to stop.
    pub(super) async fn run(self, stop: CancellationToken) {
        let mut refused: Option<String> = None;
        let mut seen: Option<Vec<u8>> = None;
        while stop.run_until_cancelled(tokio::time::sleep(LOOK_EVERY)).await.is_some() {
            let (config, has_jobs) = (Arc::clone(&self.config), !self.schedule.borrow().jobs.is_empty());
            let before = seen.clone();
            // Reading a file may block, on a network file system for long.
            let looked = tokio::task::spawn_blocking(move || look(&config, has_jobs, before.as_deref())).await;
            let (content, reading) = match looked {
                Ok(Look::Same) => continue,
                Ok(Look::Read(content, reading)) => (content, Ok(reading)),
                Err(panicked) => (None, Err(panicked)),
            };
            seen = content;
            match reading {
                Ok(Ok(schedule)) => {
                    let new = in_force(schedule);
                    if self.schedule.borrow().fingerprint != new.fingerprint {
                        self.take(new);
                    } else if refused.is_some() {
                        tracing::info!("the schedule file is as it was when it was last taken over");
                        self.board.schedule_in_force(new);
                    }
                    refused = None;
                }
                Ok(Err(why)) => {
                    if refused.as_ref() != Some(&why) {
                        tracing::error!(why, "the schedule file is refused; the schedule in force goes on");
                        self.board.metrics().schedule_reloaded(ReloadOutcome::Refused);
                        self.board.schedule_refused(why.clone());
                    }
                    refused = Some(why);
                }
                Err(panicked) => tracing::error!(error = %panicked, "reading the schedule file failed"),
            }
        }
    }

    fn take(&self, new: Arc<ScheduleInForce>) {
        let strange = new.jobs.iter().filter(|job| !self.elections.contains(&job.election));
        for job in strange {
            tracing::warn!(job = %job.name, election = %job.election, "this replica does not stand for the job's election; a restart takes new elections up");
        }
        tracing::info!(fingerprint = new.fingerprint, jobs = new.jobs.len(), "the schedule is taken over");
        self.board.metrics().schedule_reloaded(ReloadOutcome::Taken);
        self.board.schedule_in_force(Arc::clone(&new));
        self.leadership.report(Report::ScheduleFingerprint(new.fingerprint.clone()));
        self.schedule.send_replace(new);
    }
}

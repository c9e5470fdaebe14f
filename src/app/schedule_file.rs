//! The schedule file, edited while running: read again every second, taken over where it is valid, refused where it is not.
//!
//! Its content is compared, not its time: a deployment that renames a file into place may keep times. A broken, empty or
//! missing file leaves the schedule in force as it is; it is logged once, counted, and shown.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::board::Board;
use crate::config::{Config, ScheduleFile};
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

impl Watcher {
    /// Looks until told to stop.
    pub(super) async fn run(self, stop: CancellationToken) {
        let mut refused: Option<String> = None;
        while stop.run_until_cancelled(tokio::time::sleep(LOOK_EVERY)).await.is_some() {
            let (config, has_jobs) = (Arc::clone(&self.config), !self.schedule.borrow().jobs.is_empty());
            // Reading a file may block, on a network file system for long.
            match tokio::task::spawn_blocking(move || read(&config, has_jobs)).await {
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

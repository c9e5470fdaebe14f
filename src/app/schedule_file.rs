//! The schedule file, edited while running: read again every second, taken over where it is valid, refused where it is not.
//!
//! Its content is compared, not its time: a deployment that renames a file into place may keep times. What counts is what two
//! looks in a row found, so that a file that is written in place is not taken in part. A broken, empty or missing file, and one
//! whose reading does not end, leaves the schedule in force as it is; it is logged once, counted, and shown.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::board::Board;
use crate::config::{Config, ScheduleFile};
use crate::domain::ElectionName;
use crate::leadership::{LeadershipHandle, Report};
use crate::telemetry::ReloadOutcome;
use crate::tenure::ScheduleInForce;

/// How often the file is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Reading that takes longer is given up.
const GIVE_UP_AFTER: Duration = Duration::from_secs(10);
/// So many that were given up may be under way; then the file is not looked at until one has ended.
const MOST_STUCK: usize = 4;

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

/// What a look at the file found: its bytes (`None`: nobody named one and there is none), or why it cannot be read.
type Content = Result<Option<Vec<u8>>, String>;

/// A file that has jobs in force may not go missing: that is no way to take them all back.
fn look(config: &Config, has_jobs: bool) -> Content {
    if has_jobs && !config.schedule.exists() {
        return Err(format!("{} is missing", config.schedule.display()));
    }
    match config.schedule_bytes() {
        // It went between the two.
        Ok(None) if has_jobs => Err(format!("{} is missing", config.schedule.display())),
        found => found.map_err(|errors| errors.to_string()),
    }
}

/// Which content counts: one that two looks in a row found. A file that is written in place is there in part for a moment, and
/// a part that ends between two jobs is a schedule too.
#[derive(Debug, Default)]
struct Looks {
    /// The last that counted.
    taken: Option<Content>,
    /// What the last look found, where that is another.
    new: Option<Content>,
}

impl Looks {
    /// The content, once it is another than the last that counted and has stood still.
    fn found(&mut self, content: Content) -> Option<&Content> {
        if self.taken.as_ref() == Some(&content) {
            self.new = None;
        } else if self.new.as_ref() == Some(&content) {
            self.new = None;
            return Some(self.taken.insert(content));
        } else {
            self.new = Some(content);
        }
        None
    }
}

/// Reading that was given up and may still be under way, each on a thread of its own.
#[derive(Default)]
struct Stuck(Vec<JoinHandle<Content>>);

impl Stuck {
    /// Whether another may be begun.
    fn has_room(&mut self) -> bool {
        self.0.retain(|reading| !reading.is_finished());
        self.0.len() < MOST_STUCK
    }
}

impl Watcher {
    /// Looks until told to stop.
    pub(super) async fn run(self, stop: CancellationToken) {
        let mut refused: Option<String> = None;
        let mut looks = Looks::default();
        let mut stuck = Stuck::default();
        while stop.run_until_cancelled(tokio::time::sleep(LOOK_EVERY)).await.is_some() {
            if !stuck.has_room() {
                continue;
            }
            let (config, has_jobs) = (Arc::clone(&self.config), !self.schedule.borrow().jobs.is_empty());
            // Reading a file may block, on a network file system for ever.
            let mut reading = tokio::task::spawn_blocking(move || look(&config, has_jobs));
            let found = match tokio::time::timeout(GIVE_UP_AFTER, &mut reading).await {
                Ok(Ok(content)) => looks.found(content),
                Ok(Err(panicked)) => {
                    tracing::error!(error = %panicked, "reading the schedule file failed");
                    continue;
                }
                Err(_elapsed) => {
                    stuck.0.push(reading);
                    let file = self.config.schedule.display();
                    self.refuse(&mut refused, format!("{file}: reading it was given up after {GIVE_UP_AFTER:?}"));
                    // What comes next is judged anew, also where it is what was there before.
                    looks = Looks::default();
                    continue;
                }
            };
            match found.map(|content| self.judged(content)) {
                None => {}
                Some(Ok(schedule)) => {
                    let new = in_force(schedule);
                    if self.schedule.borrow().fingerprint != new.fingerprint {
                        self.take(new);
                    } else if refused.is_some() {
                        tracing::info!("the schedule file is as it was when it was last taken over");
                        self.board.schedule_in_force(new);
                    }
                    refused = None;
                }
                Some(Err(why)) => self.refuse(&mut refused, why),
            }
        }
    }

    fn judged(&self, content: &Content) -> Result<ScheduleFile, String> {
        let bytes = content.clone()?;
        self.config.schedule_of(bytes).map_err(|errors| errors.to_string())
    }

    /// Says once why the schedule in force goes on.
    fn refuse(&self, refused: &mut Option<String>, why: String) {
        if refused.as_ref() != Some(&why) {
            tracing::error!(why, "the schedule file is refused; the schedule in force goes on");
            self.board.metrics().schedule_reloaded(ReloadOutcome::Refused);
            self.board.schedule_refused(why.clone());
        }
        *refused = Some(why);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_content_counts_once_two_looks_in_a_row_have_found_it() {
        let text = |text: &str| Ok(Some(text.as_bytes().to_vec()));
        let mut looks = Looks::default();
        let mut counts = |content: &Content| looks.found(content.clone()).is_some();
        let (whole, part, away): (Content, Content, Content) = (text("a b"), text("a"), Err("away".to_owned()));
        assert_eq!([&whole, &whole, &whole].map(&mut counts), [false, true, false], "once");
        assert_eq!([&part, &whole, &part, &whole].map(&mut counts), [false; 4], "a part that was seen for a moment");
        assert_eq!([&away, &part, &part].map(&mut counts), [false, false, true], "nor what came before it");
        assert_eq!([&away, &away, &part, &part].map(&mut counts), [false, true, false, true]);
    }
}

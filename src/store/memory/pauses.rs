//! Pausing a job, and ending its pause: an operator's act on its row.

use chrono::{DateTime, Utc};

use super::fence::Act;
use super::state::{Done, MemoryState};
use crate::domain::pause::PastPause;
use crate::domain::{ElectionName, JobName};
use crate::store::{Actor, PauseOutcome, PauseView};

/// An act on a job.
fn act<'a>(action: &'a str, job: &JobName, reason: &'a str, election: &'a ElectionName) -> Act<'a> {
    let target = format!("job {job}");
    Act { action, target, reason: Some(reason), election: Some(election), already: false, baseline: None }
}

impl MemoryState {
    /// The job of that name that was not removed.
    fn job_named(&self, job: &JobName) -> Option<(i64, ElectionName)> {
        let found = self.jobs.values().find(|found| found.definition.name == *job && found.removed_at.is_none());
        found.map(|found| (found.id, found.election.clone()))
    }

    pub(super) fn pause_job(
        &mut self,
        job: &JobName,
        reason: &str,
        actor: &Actor,
        now: DateTime<Utc>,
    ) -> Done<PauseOutcome> {
        let Some((id, election)) = self.job_named(job) else { return Done::RollBack(PauseOutcome::NotFound) };
        let Some(found) = self.jobs.get_mut(&id) else { return Done::RollBack(PauseOutcome::NotFound) };
        if let Some(pause) = &found.paused {
            return Done::RollBack(PauseOutcome::Already { pause: Some(pause.clone()) });
        }
        found.paused = Some(PauseView { since: now, reason: reason.to_owned() });
        self.act(actor, act("pause", job, reason, &election), now);
        Done::Commit(PauseOutcome::Done)
    }

    pub(super) fn unpause_job(
        &mut self,
        job: &JobName,
        reason: &str,
        actor: &Actor,
        now: DateTime<Utc>,
    ) -> Done<PauseOutcome> {
        let Some((id, election)) = self.job_named(job) else { return Done::RollBack(PauseOutcome::NotFound) };
        let Some(found) = self.jobs.get_mut(&id) else { return Done::RollBack(PauseOutcome::NotFound) };
        let Some(pause) = found.paused.take() else {
            return Done::RollBack(PauseOutcome::Already { pause: None });
        };
        let ended = PastPause { from: pause.since, until: now, reason: pause.reason };
        found.pauses = PastPause::kept(std::mem::take(&mut found.pauses), ended, found.evaluated_until);
        self.act(actor, act("unpause", job, reason, &election), now);
        Done::Commit(PauseOutcome::Done)
    }
}

//! The sweep: every second, and whenever a timer, an edit or the next tick's time wakes it, it asks the store what waits.
//!
//! It is what makes timers hints: a tick is found within a second without any of them. It also keeps the tenure's idea of
//! the store's time, notices a halt and its end, wakes who serves requests, renews what the coordinator remembers once per TTL, and
//! reads the figures for metrics.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::sync::{mpsc, watch};

use super::known::Known;
use super::promotion::record_of;
use super::scope::{Stop, Tenure};
use super::timers::Timers;
use super::{ScheduleInForce, bringup, planner, pulse};
use crate::clock;
use crate::domain::{JobName, Moment};
use crate::store::JobsView;

/// Between two sweeps.
const SWEEP: Duration = Duration::from_secs(1);
/// Between two readings of the figures.
const FIGURES: Duration = Duration::from_secs(5);
/// Between two tries to bring up what could not be brought up to the schedule; an edit is tried at once.
const BRING_UP_AGAIN: Duration = Duration::from_secs(5);
/// Between two looks for jobs that belong to the election and are not in it, or the other way round: leaders of other elections
/// took them, or have not taken them yet.
const ASTRAY: Duration = Duration::from_mins(1);
/// So long before the next tick the jobs are read that it may be one of: at the tick they only have to be recorded. Whatever changes
/// meanwhile is compared there.
const AHEAD: Duration = Duration::from_millis(750);
/// The shortest sleep before a tick that is not due quite yet.
const SHORTEST: Duration = Duration::from_millis(1);

/// What the sweep keeps between two looks.
struct Sweep {
    tenure: Tenure,
    timers: Timers,
    known: Known,
    schedule: watch::Receiver<Arc<ScheduleInForce>>,
    next_due: Option<DateTime<Utc>>,
    /// The jobs, where they were read ahead of the next tick.
    ahead: Option<JobsView>,
    pulse_at: Moment,
    figures_at: Moment,
    renew_at: Moment,
    /// Whether the job rows may lack something of the schedule.
    edited: bool,
    /// When that is tried again where it could not be done completely.
    bring_up_at: Moment,
    /// When it is done again because the number of jobs is not the schedule's.
    astray_at: Moment,
    /// Whether a figures task is under way.
    figures: Option<tokio::task::JoinHandle<Option<()>>>,
}

/// Why it looks.
enum Woken {
    Timer,
    Edit,
    Time,
    Stopping,
}

/// Sweeps until the tenure stops. The timers come down with it.
pub(super) async fn sweep(tenure: Tenure, timers: Timers, mut fired: mpsc::Receiver<JobName>) {
    let now = clock::boottime();
    let schedule = tenure.deps.schedule.clone();
    let renew_at = now + tenure.deps.settings.lease_ttl;
    let mut sweep = Sweep {
        tenure,
        timers,
        known: Known::default(),
        schedule,
        next_due: None,
        ahead: None,
        pulse_at: now,
        figures_at: now,
        renew_at,
        edited: true,
        bring_up_at: now,
        astray_at: now + ASTRAY,
        figures: None,
    };
    loop {
        let new = match sweep.woken(&mut fired).await {
            Woken::Stopping => break,
            Woken::Edit => true,
            Woken::Timer | Woken::Time => false,
        };
        sweep.edited |= new;
        match sweep.look(new).await {
            Ok(()) => {}
            Err(Stop::Ending) => break,
            // Asked again at the next sweep.
            Err(Stop::Halted) => sweep.next_due = None,
            Err(Stop::Failed(error)) => {
                tracing::error!(claim = %sweep.tenure.claim, %error, "the sweep failed; again in a second");
                sweep.next_due = None;
            }
        }
    }
}

impl Sweep {
    /// Waits for whatever comes first.
    async fn woken(&mut self, fired: &mut mpsc::Receiver<JobName>) -> Woken {
        let now = clock::boottime();
        let to_sweep = self.pulse_at.since(now);
        let early = if self.ahead.is_some() { Duration::ZERO } else { AHEAD };
        let to_tick = self.next_due.map_or(to_sweep, |due| {
            let wait = self.tenure.clock.until(due, now);
            // Nearer than that, it was not known in time to read ahead of it.
            wait.checked_sub(early).unwrap_or(wait).max(SHORTEST)
        });
        tokio::select! {
            biased;
            () = self.tenure.stopping.cancelled() => Woken::Stopping,
            Ok(()) = self.schedule.changed() => Woken::Edit,
            // A timer only has the time until its tick computed anew; the wait then is exact.
            Some(_) = fired.recv() => Woken::Timer,
            () = tokio::time::sleep(to_sweep.min(to_tick)) => Woken::Time,
        }
    }

    /// `new`: the schedule has just been edited.
    async fn look(&mut self, new: bool) -> Result<(), Stop> {
        let now = clock::boottime();
        if now >= self.pulse_at {
            self.pulse_at = now + SWEEP;
            self.pulse().await?;
        }
        if self.edited && (new || now >= self.bring_up_at) {
            let schedule = Arc::clone(&self.schedule.borrow_and_update());
            self.bring_up_at = now + BRING_UP_AGAIN;
            self.edited = !bringup::bring_up(&self.tenure, &schedule).await?;
            self.next_due = None;
        }
        let wait = self.next_due.map_or(Duration::ZERO, |due| self.tenure.clock.until(due, clock::boottime()));
        if wait.is_zero() {
            let ahead = self.ahead.take();
            // Were this to fail, everything is read anew.
            let at_all = self.next_due.take().is_some();
            self.next_due = planner::evaluate(&self.tenure, &self.timers, &mut self.known, ahead.filter(|_| at_all))
                .await?
                .or(Some(DateTime::<Utc>::MAX_UTC));
        } else if wait <= AHEAD && self.ahead.is_none() {
            self.ahead = Some(planner::read(&self.tenure).await?);
        } else if wait > AHEAD {
            self.ahead = None;
        }
        Ok(())
    }

    /// One indexed query, and what follows from its answer.
    async fn pulse(&mut self) -> Result<(), Stop> {
        let tenure = self.tenure.clone();
        self.read_figures(clock::boottime());
        let heard = pulse::hear(&tenure).await?;
        let pulse = heard.pulse;
        if heard.stepped_back {
            tracing::error!(claim = %tenure.claim, now = %pulse.now,
                "the store's clock was stepped back: nothing runs twice, and ticks go on once it has passed where it was");
            self.next_due = None;
        }
        tenure.deps.observer.store_time(pulse.now);
        if tenure.halted.send_replace(false) {
            tracing::warn!(claim = %tenure.claim, "the election was resumed");
            // What is there is the new baseline, at once.
            self.renew_at = heard.sent;
        }
        if pulse.open_runs > 0 {
            tenure.work.notify_one();
        }
        if clock::boottime() >= self.astray_at {
            self.astray_at = clock::boottime() + ASTRAY;
            let schedule = Arc::clone(&self.schedule.borrow());
            let of_schedule = schedule.jobs.iter().filter(|job| job.election == tenure.claim.election).count() as u64;
            self.edited |= pulse.jobs != of_schedule;
        }
        if pulse.requests > 0 {
            tenure.requests.notify_one();
        }
        if clock::boottime() >= self.renew_at {
            self.renew_at = clock::boottime() + tenure.deps.settings.lease_ttl;
            match self.renew_memory().await {
                // Tried at the next renewal; ticks do not wait for it.
                Err(Stop::Failed(error)) => {
                    tracing::error!(claim = %tenure.claim, %error, "what the store is could not be read");
                }
                done @ (Ok(()) | Err(Stop::Ending | Stop::Halted)) => done?,
            }
        }
        Ok(())
    }

    /// Remembers where the store stands now. A coordinator that is away is leadership's matter: the next time does it.
    async fn renew_memory(&self) -> Result<(), Stop> {
        let tenure = &self.tenure;
        let lineage = tenure.record("lineage", || tenure.store.lineage()).await?;
        if let Err(error) = tenure.memory.put(&tenure.claim, &record_of(tenure, lineage)).await {
            tracing::warn!(claim = %tenure.claim, %error, "what the store is could not be remembered");
        }
        Ok(())
    }

    /// Reads the figures in a task of its own, one at a time: a slow count must not hold up a tick.
    fn read_figures(&mut self, now: Moment) {
        if now < self.figures_at || self.figures.as_ref().is_some_and(|task| !task.is_finished()) {
            return;
        }
        self.figures_at = now + FIGURES;
        let tenure = self.tenure.clone();
        self.figures = Some(self.tenure.spawn_aside(async move {
            let election = &tenure.claim.election;
            match tenure.deps.store.figures(election).await {
                Ok(figures) if !tenure.stopping.is_cancelled() => tenure.deps.observer.figures(election, &figures),
                Ok(_) => {}
                Err(error) => tracing::warn!(claim = %tenure.claim, %error, "the figures could not be read"),
            }
        }));
    }
}

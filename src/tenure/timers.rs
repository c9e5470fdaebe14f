//! Wake-ups shortly before ticks, by tokio-cron-scheduler: one-shot jobs at instants that [`crate::schedule`] computed. A
//! firing is a hint and nothing else; what is due is read from the store.
//!
//! The scheduler wakes every 500 ms and counts in whole seconds of the wall clock, so it is asked [`LEAD`] early, and the
//! sweep sleeps exactly to the tick. It also leaves tasks behind at every shutdown. So it lives in a one-thread runtime of
//! its own, on a thread of its own, per tenure; that runtime is shut down whole, and the thread joined.
//!
//! Deliberately absent: cron expressions and zones. The scheduler never sees one.

use std::collections::HashMap;
use std::thread::JoinHandle;
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::sync::mpsc;
use tokio_cron_scheduler::{Job, JobScheduler, JobSchedulerError};
use uuid::Uuid;

use crate::domain::JobName;

/// So long before its tick a timer fires, at the latest; up to 1.5 s earlier.
pub(super) const LEAD: Duration = Duration::from_secs(2);

/// Orders and firings that may wait; more are dropped, the sweep makes up for them.
const QUEUE: usize = 256;

/// Set, or set anew, the timer of a job.
struct Arm {
    job: JobName,
    due_at: DateTime<Utc>,
    wait: Duration,
}

/// The timers of one tenure.
pub(super) struct Timers {
    arms: Option<mpsc::Sender<Arm>>,
    thread: Option<JoinHandle<()>>,
}

impl Timers {
    /// Starts the thread. Firings arrive at the receiver.
    ///
    /// # Errors
    /// The operating system refuses a thread or a runtime.
    pub(super) fn start() -> std::io::Result<(Self, mpsc::Receiver<JobName>)> {
        let (arms, orders) = mpsc::channel(QUEUE);
        let (fire, fired) = mpsc::channel(QUEUE);
        #[cfg(feature = "chaos")]
        if crate::clock::simulated::is_on() {
            // No threads in a simulation: all hints are lost, and the sweep has to do without.
            return Ok((Self { arms: None, thread: None }, fired));
        }
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
        let thread = std::thread::Builder::new().name("tenure-timers".to_owned()).spawn(move || {
            if let Err(error) = runtime.block_on(serve(orders, fire)) {
                // The sweep finds every tick within a second without them.
                tracing::error!(%error, "the timers failed");
            }
            runtime.shutdown_background();
        })?;
        Ok((Self { arms: Some(arms), thread: Some(thread) }, fired))
    }

    /// Sets the timer of a job to `wait` from now. Never waits; an order too many is dropped.
    pub(super) fn arm(&self, job: &JobName, due_at: DateTime<Utc>, wait: Duration) {
        if let Some(arms) = &self.arms {
            // Full or over: the sweep is behind it.
            let _ = arms.try_send(Arm { job: job.clone(), due_at, wait });
        }
    }
}

/// Ends the thread and joins it, also where the sweep is dropped in the middle; blocks for the moment that takes.
impl Drop for Timers {
    fn drop(&mut self) {
        crate::mutant!("timers.left-running" => { std::mem::forget(self.arms.take()); return; });
        self.arms = None;
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the timers' thread panicked");
        }
    }
}

async fn serve(mut orders: mpsc::Receiver<Arm>, fire: mpsc::Sender<JobName>) -> Result<(), JobSchedulerError> {
    let scheduler = JobScheduler::new().await?;
    scheduler.start().await?;
    let mut armed: HashMap<JobName, (DateTime<Utc>, Uuid)> = HashMap::new();
    while let Some(Arm { job, due_at, wait }) = orders.recv().await {
        match armed.remove(&job) {
            Some((before, id)) if before == due_at => {
                armed.insert(job, (before, id));
                continue;
            }
            Some((_, id)) => scheduler.remove(&id).await?,
            None => {}
        }
        let (fire, name) = (fire.clone(), job.clone());
        let one_shot = Job::new_one_shot_async(wait.saturating_sub(LEAD), move |_, _| {
            let _ = fire.try_send(name.clone());
            Box::pin(std::future::ready(()))
        })?;
        armed.insert(job, (due_at, scheduler.add(one_shot).await?));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timer_fires_before_its_tick_and_only_the_last_arming_counts() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        let (timers, mut fired) = Timers::start().expect("a thread");
        let job = JobName::new("daily").expect("valid");
        let due = DateTime::from_timestamp(1_800_000_000, 0).expect("in range");
        timers.arm(&job, due, Duration::from_hours(1));
        timers.arm(&job, due + chrono::TimeDelta::seconds(1), Duration::from_secs(3));
        let first = runtime.block_on(async { tokio::time::timeout(Duration::from_secs(5), fired.recv()).await });
        assert_eq!(first, Ok(Some(job)));
        drop(timers);
        let over = runtime.block_on(async { tokio::time::timeout(Duration::from_secs(5), fired.recv()).await });
        assert_eq!(over, Ok(None), "nothing fires after the end");
    }
}

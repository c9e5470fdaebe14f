//! The receiver that calls of a run go to: whether it may be sent to, and what its answers say about it. The rules of a payout, in
//! transactions of their own: a leader that dies between recording its answers and these leaves it to the next one to find out again.
//!
//! Invariant: one that is known to work is asked for, and told of, once a second at most; one that stops is at once.

use std::time::Duration;

use super::super::scope::{Stop, Tenure};
use crate::clock;
use crate::domain::Moment;
use crate::domain::job::RetryDefinition;
use crate::settlement::CallOutcome;
use crate::settlement::http::Receiver;
use crate::store::{Heard, ReceiverAsk, ReceiverWay};

/// How long what was asked or told is taken for what is so.
const FRESH: Duration = Duration::from_secs(1);

/// What an answer says about the receiver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Said {
    /// Nothing.
    Nothing,
    /// It works.
    Did,
    /// It works, and said a final no.
    No,
    /// It stops.
    Stop(&'static str, String),
}

impl Said {
    pub(super) fn of(outcome: &CallOutcome) -> Self {
        match outcome {
            CallOutcome::Done => Self::Did,
            CallOutcome::Refused { .. } => Self::No,
            CallOutcome::Stopped { reason, why } => Self::Stop(reason, why.clone()),
            CallOutcome::Failed { .. }
            | CallOutcome::PutOff { .. }
            | CallOutcome::NotNow { .. }
            | CallOutcome::Mismatch { .. }
            | CallOutcome::Fenced { .. }
            | CallOutcome::NotSent
            | CallOutcome::Unknown { .. } => Self::Nothing,
        }
    }
}

/// What is known of the receiver between two looks.
#[derive(Debug, Default)]
pub(in crate::tenure) struct Door {
    /// How often its secrets and authorities had changed when it was last asked for.
    changes: Option<u64>,
    stopped: bool,
    /// A secret or authorities were read anew, and nothing has been tried with it yet.
    probe_now: bool,
    /// When it was last found to be open.
    open_at: Option<Moment>,
    /// When it was last told that it works.
    told_at: Option<Moment>,
    /// It asked to be sent nothing before this.
    quiet_until: Moment,
}

fn fresh(since: Option<Moment>) -> bool {
    since.is_some_and(|since| clock::boottime().since(since) < FRESH)
}

impl Door {
    /// How long nothing is to be taken for it, as it asked for itself.
    pub(in crate::tenure) fn quiet_for(&self) -> Duration {
        self.quiet_until.since(clock::boottime())
    }

    /// How many of `free` calls may be taken, with `on_the_wire` there already: all; none while the receiver has asked for a wait; one,
    /// or none, while it is stopped.
    ///
    /// # Errors
    /// [`Stop`].
    pub(super) async fn room(
        &mut self,
        tenure: &Tenure,
        receiver: &Receiver,
        retry: &RetryDefinition,
        free: usize,
        on_the_wire: usize,
    ) -> Result<usize, Stop> {
        if let Some(quiet) = receiver.quiet_for() {
            self.quiet_until = clock::boottime() + quiet;
            return Ok(0);
        }
        if fresh(self.open_at) {
            return Ok(free);
        }
        if self.stopped && on_the_wire > 0 {
            return Ok(0);
        }
        let changes = receiver.changes().await;
        self.probe_now |= self.changes.is_some_and(|known| known != changes);
        self.changes = Some(changes);
        let asked_at = clock::boottime();
        let way = self.ask(tenure, receiver, retry, false).await?;
        let (stopped, room) = match way {
            ReceiverWay::Open => (false, free),
            ReceiverWay::Probe(_) => (true, if on_the_wire == 0 { free.min(1) } else { 0 }),
            ReceiverWay::Closed { .. } => (true, 0),
        };
        self.stopped = stopped;
        self.open_at = if stopped { None } else { Some(asked_at) };
        Ok(room)
    }

    /// Whether what was taken may go: where it is stopped, that one is a try, and the next has to wait longer. What nothing was
    /// taken for uses up none.
    ///
    /// # Errors
    /// [`Stop`].
    pub(super) async fn lets_go(
        &mut self,
        tenure: &Tenure,
        receiver: &Receiver,
        retry: &RetryDefinition,
    ) -> Result<bool, Stop> {
        if !self.stopped {
            return Ok(true);
        }
        let way = self.ask(tenure, receiver, retry, true).await?;
        self.probe_now = false;
        Ok(match way {
            ReceiverWay::Open | ReceiverWay::Probe(_) => true,
            // Somebody else was faster.
            ReceiverWay::Closed { .. } => false,
        })
    }

    async fn ask(
        &self,
        tenure: &Tenure,
        receiver: &Receiver,
        retry: &RetryDefinition,
        tries: bool,
    ) -> Result<ReceiverWay, Stop> {
        let ask = ReceiverAsk {
            origin: receiver.origin(),
            probe_waits: (retry.backoff_min, retry.backoff_max),
            probe_now: self.probe_now,
            tries,
        };
        tenure.begin("receiver_way", || tenure.store.receiver_way(&ask)).await
    }

    /// Notes what answers say about it, in their order.
    ///
    /// # Errors
    /// [`Stop`].
    pub(super) async fn hear(
        &mut self,
        tenure: &Tenure,
        receiver: &Receiver,
        retry: &RetryDefinition,
        said: &[Said],
    ) -> Result<(), Stop> {
        let mut heard = Heard::nothing(receiver.origin(), receiver.rules().max_refusals, retry.backoff_min);
        for said in said {
            match said {
                Said::Nothing => {}
                Said::Did => heard.done(),
                Said::No => heard.refusal(),
                Said::Stop(reason, why) => heard.stop = Some((*reason, why.clone())),
            }
        }
        let works = heard.stop.is_none() && heard.refused == 0;
        if heard.is_nothing() || (works && !self.stopped && fresh(self.told_at)) {
            return Ok(());
        }
        let receiver = &heard.origin;
        if let Some((reason, why)) = &heard.stop
            && !self.stopped
        {
            tracing::error!(claim = %tenure.claim, receiver, reason, why, "a receiver is stopped: one call is tried per wait");
        }
        let asked_at = clock::boottime();
        let needs_resume = match tenure.record("heard", || tenure.store.heard(&heard)).await {
            Ok(needs_resume) => needs_resume,
            Err(Stop::Failed(error)) => {
                tracing::error!(claim = %tenure.claim, receiver, %error, "what a receiver said of itself could not be recorded");
                return Ok(());
            }
            Err(stop @ (Stop::Ending | Stop::Halted)) => return Err(stop),
        };
        if needs_resume {
            tracing::error!(claim = %tenure.claim, receiver, "a receiver refused too often in a row: it is stopped until `receivers resume`");
        }
        self.stopped = needs_resume || heard.stop.is_some();
        self.told_at = works.then_some(asked_at);
        // Asked for again, whatever it was: it has just stopped, or works again.
        self.open_at = None;
        Ok(())
    }
}

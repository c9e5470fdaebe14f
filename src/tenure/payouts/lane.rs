//! One receiver's lane: take, leave, send, record; as many at a time as the receiver may have on the wire.
//!
//! Invariants:
//! - A payout is in hand from the answer of its take until its outcome is on record; what a take without an answer may have
//!   left `sending` is all that stands so for this receiver and is not in hand, and is put back.
//! - A try that was not given leave is put back; one that was, and has no answer when the drain is over, is unknown. An
//!   abrupt end records nothing: promotion finds what was left `sending`.
//! - While the receiver is stopped, one try at a time, and only as the store allows.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use tokio::sync::{Notify, watch};
use tokio::task::{JoinError, JoinHandle};

use super::super::backoff;
use super::super::scope::{Stop, Tenure};
use super::attempt::{Answered, LaneJob, make};
use crate::clock;
use crate::domain::Moment;
use crate::settlement::Fence;
use crate::settlement::http::Verdict;
use crate::store::{PayoutFate, PayoutRecord, PayoutRecords, PayoutTake, PayoutTerms, PayoutsTaken, StoreError};

/// Outcomes recorded in one transaction.
const RECORDED_AT_ONCE: usize = 500;
/// The longest between two looks, and the wait after one that could not be made.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// How long a few free places wait for more of them.
const PATIENCE: Duration = Duration::from_millis(100);
/// The shortest between two looks that nothing woke.
const SHORTEST: Duration = Duration::from_millis(10);

/// Ends of tries; none where the task was dropped with the tenure.
type Ended = Result<Option<Answered>, JoinError>;
type Answers = FuturesUnordered<JoinHandle<Option<Answered>>>;

/// One receiver's lane.
pub(super) struct Lane {
    tenure: Tenure,
    origin: String,
    fence: Arc<Fence>,
    jobs: watch::Receiver<Arc<[LaneJob]>>,
    wake: Arc<Notify>,
    answers: Answers,
    /// Payouts whose outcome is not on record yet: instruction and try.
    in_hand: BTreeMap<i64, u32>,
    /// When the store is asked next.
    look_at: Moment,
    stopped: bool,
    /// Changes of secrets and authorities that were seen.
    changes: u64,
    /// Which job goes first.
    turn: usize,
}

impl Lane {
    pub(super) fn new(
        tenure: Tenure,
        origin: String,
        fence: Fence,
        jobs: watch::Receiver<Arc<[LaneJob]>>,
        wake: Arc<Notify>,
    ) -> Self {
        Self {
            tenure,
            origin,
            fence: Arc::new(fence),
            jobs,
            wake,
            answers: Answers::new(),
            in_hand: BTreeMap::new(),
            look_at: clock::boottime(),
            stopped: false,
            changes: 0,
            turn: 0,
        }
    }

    /// Works until the tenure stops and every answer is on record.
    ///
    /// # Errors
    /// [`Stop`].
    pub(super) async fn run(mut self) -> Result<(), Stop> {
        let stopping = self.tenure.stopping.clone();
        loop {
            let (room, patience) = self.room();
            if stopping.is_cancelled() {
                if self.answers.is_empty() {
                    return Ok(());
                }
            } else if room > 0 && clock::boottime() >= self.look_at + patience {
                self.look(room).await?;
                continue;
            }
            let wait = (self.look_at + patience).since(clock::boottime());
            tokio::select! {
                biased;
                Some(first) = self.answers.next() => self.take_in(first).await?,
                () = self.wake.notified() => self.look_at = self.look_at.min(clock::boottime()),
                () = tokio::time::sleep(wait), if room > 0 && !stopping.is_cancelled() => {}
                () = stopping.cancelled(), if !stopping.is_cancelled() => {}
            }
        }
    }

    /// How many more may be taken, and how long they may wait: while less than a quarter of the receiver's share is free, for
    /// a transaction each would cost more than the request. No longer than that, for those that are on the wire may be slow.
    fn room(&self) -> (u32, Duration) {
        let jobs = self.jobs.borrow();
        let most = jobs.iter().map(|job| job.receiver.rules().max_in_flight.max(1)).min().unwrap_or(0);
        let second = jobs.iter().filter_map(|job| job.receiver.rules().max_per_second).min().unwrap_or(u32::MAX).max(1);
        let on_the_wire = u32::try_from(self.answers.len()).unwrap_or(u32::MAX);
        if self.stopped {
            return (u32::from(on_the_wire == 0 && most > 0), Duration::ZERO);
        }
        let free = most.saturating_sub(on_the_wire);
        (free.min(second), if free >= most.div_ceil(4) { Duration::ZERO } else { PATIENCE })
    }

    /// Takes what is due and sends it on its way.
    async fn look(&mut self, room: u32) -> Result<(), Stop> {
        let jobs = Arc::clone(&self.jobs.borrow_and_update());
        if let Some(quiet) = jobs.iter().filter_map(|job| job.receiver.quiet_for()).max() {
            // It asked for it, and that not of one payout.
            self.look_at = clock::boottime() + quiet.min(LOOK_AGAIN);
            return Ok(());
        }
        let changes = changes_of(&jobs).await;
        let probe_now = changes != self.changes;
        let asked_at = clock::boottime();
        let take = self.order(&jobs, room, probe_now);
        let taken = match self.take(&take).await {
            Ok(taken) => taken,
            Err(Stop::Ending) => return Ok(()),
            Err(Stop::Halted) => {
                self.look_at = clock::boottime() + LOOK_AGAIN;
                return Ok(());
            }
            Err(Stop::Failed(error)) => {
                tracing::error!(claim = %self.tenure.claim, receiver = self.origin, %error, "payouts could not be taken; again");
                self.look_at = clock::boottime() + LOOK_AGAIN;
                return Ok(());
            }
        };
        if taken.stopped.is_none() || !taken.payouts.is_empty() {
            // Until something is tried with what was read anew, the next look tries it.
            self.changes = changes;
        }
        self.stopped = taken.stopped.is_some();
        if taken.held > 0 {
            tracing::warn!(claim = %self.tenure.claim, receiver = self.origin, held = taken.held, "payouts are held for a person");
        }
        let wait = match taken.next_in {
            _ if taken.full => Duration::ZERO,
            Some(next) => next.clamp(SHORTEST, LOOK_AGAIN),
            None => LOOK_AGAIN,
        };
        self.look_at = clock::boottime() + wait;
        for payout in taken.payouts {
            let Some(job) = jobs.iter().find(|job| job.id == payout.job) else { continue };
            self.in_hand.insert(payout.instruction, payout.attempt);
            let trying = make(self.tenure.clone(), Arc::clone(&self.fence), job.clone(), payout, asked_at);
            self.answers.push(self.tenure.spawn(trying));
        }
        Ok(())
    }

    fn order(&mut self, jobs: &[LaneJob], limit: u32, probe_now: bool) -> PayoutTake {
        self.turn = self.turn.wrapping_add(1);
        let first = self.turn % jobs.len().max(1);
        let in_turn = jobs.iter().cycle().skip(first).take(jobs.len());
        let terms = |job: &LaneJob| {
            let rules = job.receiver.rules();
            PayoutTerms {
                job: job.id,
                url: rules.url.clone(),
                idempotent: rules.idempotent,
                looks_up: rules.lookup_url.is_some(),
                key_valid_for: rules.key_valid_for,
                timeout: rules.timeout,
                maximum: job.maximum.clone(),
            }
        };
        let (shortest, longest) = probe_waits(jobs.iter());
        PayoutTake {
            origin: self.origin.clone(),
            jobs: in_turn.map(terms).collect(),
            limit,
            probe_waits: (shortest, longest),
            probe_now,
        }
    }

    /// Commits payouts as `sending`, again with backoff after a passing fault.
    async fn take(&self, take: &PayoutTake) -> Result<PayoutsTaken, Stop> {
        let tenure = &self.tenure;
        let _permit = tenure.permit().await?;
        let mut failures = 0;
        loop {
            tenure.pass_gate().await?;
            crate::point!("tenure.payouts.before_take");
            match tenure.enter("take_payouts", tenure.store.take_payouts(take).await).await? {
                Ok(taken) => {
                    if !taken.payouts.is_empty() {
                        crate::point!("tenure.payouts.after_take");
                    }
                    return Ok(taken);
                }
                Err(error) if error.is_passing() => {
                    failures += 1;
                    if let StoreError::Unknown { .. } = error {
                        self.put_back().await?;
                    }
                    tracing::warn!(claim = %tenure.claim, receiver = self.origin, %error, "payouts could not be taken; trying again");
                    tenure.sleep(backoff::wait(failures, clock::random_u64())).await?;
                }
                Err(error) => return Err(Stop::Failed(error)),
            }
        }
    }

    /// Puts back what a take without an answer may have left `sending`: nobody sends it.
    async fn put_back(&self) -> Result<(), Stop> {
        let tenure = &self.tenure;
        let kept: Vec<(i64, u32)> =
            self.in_hand.iter().map(|(instruction, attempt)| (*instruction, *attempt)).collect();
        match tenure.record("put_back_payouts", || tenure.store.put_back_payouts(&self.origin, &kept)).await {
            Ok(put_back) => {
                tracing::info!(claim = %tenure.claim, receiver = self.origin, put_back, "payouts of a take without an answer are put back");
                Ok(())
            }
            Err(Stop::Failed(error)) => {
                Err(self.left_on_the_wire("payouts that nobody sends could not be put back", &error))
            }
            Err(stop @ (Stop::Ending | Stop::Halted)) => Err(stop),
        }
    }

    /// Payouts stand as `sending` under this term, and nobody of it would take them up again. Only a promotion may, so there
    /// has to be one.
    fn left_on_the_wire(&self, what: &str, error: &StoreError) -> Stop {
        self.tenure.fault(&format!("{what}: {error}"));
        Stop::Ending
    }

    /// Records an answer with all others that are there.
    async fn take_in(&mut self, first: Ended) -> Result<(), Stop> {
        let mut ready = Vec::from_iter(self.known(first));
        while ready.len() < RECORDED_AT_ONCE
            && let Some(Some(next)) = self.answers.next().now_or_never()
        {
            ready.extend(self.known(next));
        }
        if ready.is_empty() {
            // Dropped with the tenure; promotion finds it.
            return Ok(());
        }
        let not_sent = ready.iter().any(|answered| answered.outcome == Verdict::NotSent.as_str());
        self.record(ready).await?;
        if not_sent {
            // Halted, or the halt could not be read: looked at again, not in this loop at once.
            self.look_at = self.look_at.max(clock::boottime() + LOOK_AGAIN);
        }
        Ok(())
    }

    fn known(&self, ended: Ended) -> Option<Answered> {
        ended.unwrap_or_else(|error| {
            self.tenure.fault(&format!("the task of a payout failed: {error}"));
            None
        })
    }

    async fn record(&mut self, ready: Vec<Answered>) -> Result<(), Stop> {
        crate::point!("tenure.payouts.before_record");
        let tenure = self.tenure.clone();
        // By the rules that they were tried by, whoever sends to this receiver now.
        let max_refusals = ready.iter().map(|answered| answered.job.receiver.rules().max_refusals).min();
        let (probe_after, _) = probe_waits(ready.iter().map(|answered| &answered.job));
        let mut outcomes: BTreeMap<&'static str, u64> = BTreeMap::new();
        let mut stop = None;
        let mut records = Vec::with_capacity(ready.len());
        for answered in ready {
            *outcomes.entry(answered.outcome).or_insert(0) += 1;
            stop = answered.stop.or(stop);
            records.push(answered.record);
        }
        let records = PayoutRecords {
            origin: self.origin.clone(),
            records,
            stop,
            max_refusals: max_refusals.unwrap_or(u32::MAX),
            probe_after,
        };
        let recorded = match tenure.record("record_payouts", || tenure.store.record_payouts(&records)).await {
            Ok(recorded) => recorded,
            Err(Stop::Failed(error)) => {
                return Err(self.left_on_the_wire("outcomes of payouts could not be recorded", &error));
            }
            Err(stop @ (Stop::Ending | Stop::Halted)) => return Err(stop),
        };
        crate::point!("tenure.payouts.after_record");
        // Also where an unknown commit was repeated and had happened. What is not as expected is not `sending` for this try.
        if recorded.states.len() < records.records.len() {
            let (recorded, of) = (recorded.states.len(), records.records.len());
            tracing::warn!(claim = %tenure.claim, receiver = self.origin, recorded, of, "some payouts were not as expected");
        }
        if let Some((reason, why)) = &records.stop
            && !self.stopped
        {
            tracing::error!(claim = %tenure.claim, receiver = self.origin, reason, why, "a receiver is stopped: one payout is tried per wait");
        }
        if recorded.needs_resume {
            tracing::error!(claim = %tenure.claim, receiver = self.origin, "a receiver refused too often in a row: it is stopped until `receivers resume`");
        }
        self.stopped |= records.stop.is_some() || recorded.needs_resume;
        let settles = |record: &PayoutRecord| match record.fate {
            PayoutFate::Paid { .. } | PayoutFate::Rejected { .. } => true,
            PayoutFate::Mismatch { .. } | PayoutFate::Unknown { .. } | PayoutFate::Back { .. } => false,
        };
        if self.stopped && records.stop.is_none() && records.records.iter().any(settles) {
            // It works again: what has waited goes on at once.
            self.stopped = false;
            self.look_at = clock::boottime();
        }
        for record in &records.records {
            self.in_hand.remove(&record.instruction);
        }
        for (outcome, count) in outcomes {
            tenure.deps.observer.payout_attempts(outcome, count);
        }
        Ok(())
    }
}

/// How often the secrets and authorities of the lane's receivers have changed.
async fn changes_of(jobs: &[LaneJob]) -> u64 {
    let mut changes = 0;
    for job in jobs {
        changes += job.receiver.changes().await;
    }
    changes
}

/// The waits between tries at a stopped receiver: the shortest that a job of it has.
fn probe_waits<'a>(jobs: impl Iterator<Item = &'a LaneJob> + Clone) -> (Duration, Duration) {
    let shortest = jobs.clone().map(|job| job.retry.backoff_min).min().unwrap_or(LOOK_AGAIN);
    let longest = jobs.map(|job| job.retry.backoff_max).min().unwrap_or(LOOK_AGAIN);
    (shortest.max(SHORTEST), longest.max(SHORTEST))
}

//! In-store work: lanes of batches, halved where they fail.
//!
//! - Lanes share a keyset cursor over units never tried and pass over each other's locks. When all of them found a short
//!   page, one lane takes the units whose wait is over. What either missed, the run's next look finds.
//! - A batch takes as many units as about a second settles (see [`super::pace`]).
//! - A batch that failed as a verdict on its units is halved until the unit at fault stands alone; only that one is charged.
//! - A passing fault of the store is no verdict: the whole batch again with backoff. Five in a row, while the store answers
//!   otherwise, count as failed; our own statement time-out and a broken statement do at once.
//!
//! Invariant: nothing is known of a batch but what the store answered. After an unknown commit the same pick is simply made
//! again, for settled units are not pending any more.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::backoff::{self, FAULTS_IN_A_ROW};
use super::fate::again_in;
use super::halving::{Failed, Halving, Tried};
use super::observer::InFlight;
use super::pace::{self, Pace};
use super::scope::{Stop, Tenure};
use crate::clock;
use crate::domain::unit::{AttemptOutcome, UnitState};
use crate::settlement::caught;
use crate::store::{
    BatchCounts, BatchError, Charge, Effect, Entered, Fenced, OpenRun, SettleOutcome, StoreError, UnitFilter, UnitPick,
};
use crate::telemetry::Work;

/// What one lane works with.
#[derive(Clone)]
struct Lane {
    tenure: Tenure,
    run: Arc<OpenRun>,
    effect: Effect,
    cursor: Arc<AtomicI64>,
    pace: Arc<Pace>,
    /// Units that some lane halves: right after a rollback another lane may have claimed the same.
    halving: Arc<Mutex<BTreeSet<i64>>>,
}

/// What became of one pick.
enum Picked {
    Nothing,
    Settled(BatchCounts),
    Failed(Vec<Tried>, BatchError),
}

/// Settles until nothing is due.
///
/// # Errors
/// [`Stop`].
pub(super) async fn drain(tenure: &Tenure, run: &OpenRun, effect: &Effect) -> Result<(), Stop> {
    let lane = Lane {
        tenure: tenure.clone(),
        run: Arc::new(run.clone()),
        effect: effect.clone(),
        cursor: Arc::new(AtomicI64::new(0)),
        pace: Arc::new(Pace::new(run.definition.batch.size)),
        halving: Arc::default(),
    };
    let lanes = (0..run.definition.batch.concurrency.max(1)).map(|_| tenure.spawn(lane.clone().fresh()));
    let ended = futures_util::future::join_all(lanes).await;
    for end in ended {
        match end {
            Ok(Some(end)) => end?,
            Ok(None) => return Err(Stop::Ending),
            Err(error) => {
                let detail = format!("a lane ended: {error}");
                return Err(Stop::Failed(StoreError::Broken { operation: "settle", detail }));
            }
        }
    }
    lane.retry().await
}

/// What a batch came to, for its span: its row, units, a word, whether that is a failure. `None` where there was no unit.
fn told<P>(answer: &Result<Fenced<SettleOutcome>, P>) -> Option<(Option<i64>, u64, (&'static str, bool))> {
    match answer {
        Ok(Ok(Entered::Mine(SettleOutcome::Nothing))) => None,
        Ok(Ok(Entered::Mine(SettleOutcome::Settled(counts)))) => {
            Some((Some(counts.batch), counts.taken, ("settled", false)))
        }
        Ok(Ok(Entered::Mine(SettleOutcome::Failed { units, .. }))) => {
            Some((None, units.len() as u64, ("rolled back", true)))
        }
        Ok(Ok(Entered::Fenced(_))) => Some((None, 0, ("fenced", true))),
        Ok(Ok(Entered::Halted(_))) => Some((None, 0, ("halted", false))),
        Ok(Err(_)) => Some((None, 0, ("the store failed", true))),
        Err(_) => Some((None, 0, ("panicked", true))),
    }
}

impl Lane {
    /// Units never tried, from the shared cursor on, until a short page.
    async fn fresh(self) -> Result<(), Stop> {
        loop {
            let limit = self.pace.size();
            let after = self.cursor.load(Ordering::SeqCst);
            let taken = match self.pick(UnitPick::Fresh { after, limit }, &[]).await? {
                Picked::Nothing => return Ok(()),
                Picked::Settled(counts) => {
                    self.cursor.fetch_max(counts.last_unit, Ordering::SeqCst);
                    counts.taken
                }
                Picked::Failed(mut units, error) => {
                    self.cursor.fetch_max(units.last().map_or(after, |(id, _)| *id), Ordering::SeqCst);
                    let taken = units.len() as u64;
                    {
                        let mut halving = self.halving.lock().unwrap_or_else(PoisonError::into_inner);
                        units.retain(|(id, _)| halving.insert(*id));
                    }
                    self.halve(units, error).await?;
                    taken
                }
            };
            if taken < u64::from(limit) {
                return Ok(());
            }
        }
    }

    /// Units whose wait is over, until there is none.
    async fn retry(&self) -> Result<(), Stop> {
        loop {
            match self.pick(UnitPick::Retry { limit: self.pace.size() }, &[]).await? {
                Picked::Nothing => return Ok(()),
                Picked::Settled(_) => {}
                Picked::Failed(units, error) => self.halve(units, error).await?,
            }
        }
    }

    /// Splits what failed until every unit is settled or was charged alone.
    async fn halve(&self, units: Vec<Tried>, error: BatchError) -> Result<(), Stop> {
        let mut halving = Halving::default();
        let mut failed = Some((units, error));
        loop {
            if let Some((units, error)) = failed.take() {
                match halving.failed(units) {
                    Failed::Alone(unit) => self.charge(unit, &error).await?,
                    Failed::Split => {}
                }
            }
            let Some(half) = halving.next() else { return Ok(()) };
            let ids = half.iter().map(|(id, _)| *id).collect();
            match self.pick(UnitPick::Exactly(ids), &half).await? {
                Picked::Nothing | Picked::Settled(_) => {}
                Picked::Failed(units, error) => failed = Some((units, error)),
            }
        }
    }

    /// Charges a unit that failed alone.
    async fn charge(&self, (unit, attempts): Tried, error: &BatchError) -> Result<(), Stop> {
        let again_in = again_in(&self.run.definition.retry, attempts, error.permanent, clock::random_u64());
        let charge = [Charge { unit, attempts, error: error.message.clone(), again_in }];
        let run = self.run.id;
        let charged = self.tenure.record("charge", || self.tenure.store.charge(run, &charge)).await?;
        let outcome = if again_in.is_some() { AttemptOutcome::Failed } else { AttemptOutcome::SetAside };
        self.tenure.deps.observer.attempts(outcome, charged);
        tracing::warn!(claim = %self.tenure.claim, run, unit, attempts = attempts + 1, outcome = outcome.as_str(), "a unit failed");
        Ok(())
    }

    /// One pick until the store has answered it. `known` are the units of an exact pick.
    async fn pick(&self, pick: UnitPick, known: &[Tried]) -> Result<Picked, Stop> {
        let mut faults = 0;
        loop {
            let error = match self.settle(&pick).await? {
                Ok(SettleOutcome::Nothing) => return Ok(Picked::Nothing),
                Ok(SettleOutcome::Settled(counts)) => {
                    self.count(&counts);
                    return Ok(Picked::Settled(counts));
                }
                Ok(SettleOutcome::Failed { units, error }) => return Ok(Picked::Failed(units, error)),
                Err(error) => error,
            };
            let claim = &self.tenure.claim;
            tracing::warn!(%claim, run = self.run.id, %error, "a batch was given back");
            if error.is_passing() {
                faults += 1;
                if faults < FAULTS_IN_A_ROW {
                    self.tenure.sleep(backoff::wait(faults, clock::random_u64())).await?;
                    continue;
                }
                // A store that has no room, or cannot read its disk, is waited for like one that is away.
                if error.is_trouble_of_the_store() {
                    self.tenure.sleep(backoff::wait(faults, clock::random_u64())).await?;
                    continue;
                }
                // Waits until the store answers: what failed with the store away says nothing about the batch.
                let mut away = false;
                loop {
                    self.tenure.pass_gate().await?;
                    let Err(failed) = self.tenure.enter("pulse", self.tenure.store.pulse().await).await? else { break };
                    away = true;
                    tracing::warn!(%claim, error = %failed, "the store does not answer");
                    self.tenure.sleep(backoff::wait(faults, clock::random_u64())).await?;
                }
                if away {
                    faults = 0;
                    continue;
                }
            }
            let units = self.units_of(&pick, known).await?;
            if units.is_empty() {
                return Ok(Picked::Nothing);
            }
            return Ok(Picked::Failed(units, BatchError { message: error.to_string(), permanent: false }));
        }
    }

    /// One transaction: a permit, the gate, the batch.
    async fn settle(&self, pick: &UnitPick) -> Result<Result<SettleOutcome, StoreError>, Stop> {
        let tenure = &self.tenure;
        let _permit = tenure.permit().await?;
        crate::point!("tenure.work.before_settle");
        tenure.pass_gate().await?;
        let size = match pick {
            UnitPick::Fresh { limit, .. } | UnitPick::Retry { limit } => *limit,
            UnitPick::Exactly(units) => u32::try_from(units.len()).unwrap_or(u32::MAX),
        };
        let in_flight = InFlight::new(&tenure.deps.observer, u64::from(size));
        let sent = clock::boottime();
        let answer = caught(tenure.store.settle(&self.run, pick.clone(), &self.effect)).await;
        drop(in_flight);
        if !matches!(answer, Ok(Ok(Entered::Mine(SettleOutcome::Nothing)))) {
            let took = clock::boottime().since(sent);
            tenure.deps.observer.batch(took);
            let taken = match &answer {
                Ok(Ok(Entered::Mine(SettleOutcome::Settled(counts)))) => u32::try_from(counts.taken).unwrap_or(size),
                // What failed soon says nothing about how long its size takes; what failed late does.
                _ if took < pace::SLOW => 0,
                _ => size,
            };
            if let Some(size) = self.pace.took(taken, took) {
                tracing::info!(claim = %tenure.claim, run = self.run.id, ?took, size, "batches take long: smaller ones from now on");
            }
        }
        if let Some((batch, units, came)) = told(&answer) {
            tenure.traced(Work::Batch { batch, units }, (&self.run.definition.name, self.run.id), sent, came);
        }
        let answer = answer.unwrap_or_else(|panic| {
            Err(StoreError::Broken { operation: "settle", detail: format!("the batch panicked: {panic}") })
        });
        tenure.enter("settle", answer).await
    }

    fn count(&self, counts: &BatchCounts) {
        let ended = counts.settled + counts.carried + counts.empty;
        let observer = &self.tenure.deps.observer;
        observer.units_settled(ended);
        observer.attempts(AttemptOutcome::Settled, ended);
        if counts.instructions > 0 {
            self.tenure.payouts.notify_one();
        }
    }

    /// The units that a pick which never came to an answer would have taken.
    async fn units_of(&self, pick: &UnitPick, known: &[Tried]) -> Result<Vec<Tried>, Stop> {
        let (mut above, limit, tried) = match pick {
            UnitPick::Exactly(_) => return Ok(known.to_vec()),
            UnitPick::Fresh { after, limit } => (*after, *limit, false),
            UnitPick::Retry { limit } => (0, *limit, true),
        };
        let now = self.tenure.clock.at(clock::boottime());
        let mut found: Vec<Tried> = Vec::new();
        loop {
            let filter = UnitFilter {
                run: Some(self.run.id),
                state: Some(UnitState::Pending),
                key: None,
                above: Some(above),
                limit,
            };
            let page = match self.tenure.deps.store.units(&filter).await {
                Ok(page) => page,
                Err(error) => return Err(Stop::Failed(error)),
            };
            let last = page.last().map(|unit| unit.id);
            let short = page.len() < usize::try_from(limit).unwrap_or(usize::MAX);
            let due = page.into_iter().filter(|unit| {
                (unit.attempts > 0) == tried && (!tried || unit.next_attempt_at.is_none_or(|at| Some(at) <= now))
            });
            found.extend(due.map(|unit| (unit.id, unit.attempts)));
            match last {
                Some(last) if !short && found.len() < usize::try_from(limit).unwrap_or(usize::MAX) => above = last,
                Some(_) | None => break,
            }
        }
        found.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        Ok(found)
    }
}

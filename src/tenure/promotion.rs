//! Promotion: from a term that was won to a tenure at work. Each step is safe to repeat; if one fails, the replica resigns.
//!
//! 1. Compare what the coordinator remembers of the store with what is there. Found to have forgotten: halt the election
//!    with that reason, and go on halted.
//! 2. Advance the fence. From here on no lower term commits anything. The tenure's first session is opened meanwhile.
//! 3. First work: the store's time, read in a transaction of kind *begin* (refused where halted).
//! 4. Remember what the store accepted; not while it is halted, for what is remembered must outlive a store that forgot.
//! 5. Recover: what a lower term left `sending` is unknown now; deaths of leaders are counted. A run that killed too many is marked
//!    here and given up at work, so that no number of units makes a promotion longer.
//! 6. Halted: wait here for the resume, which makes what is there the new baseline.
//! 7. Bring the job rows up to the schedule. The sweep then opens the runs of missed ticks, and work begins.

use std::sync::Arc;
use std::time::Duration;

use super::accepted::{self, AcceptedRecord, MemoryError};
use super::admission::AtTheGate;
use super::bringup;
use super::edge::Win;
use super::pulse::{self, Heartbeat};
use super::scope::{Scope, Stop, Tenure};
use crate::clock;
use crate::domain::Claim;
use crate::store::{Admission, AdvanceOutcome, Lineage, Promotion, Recovery, StoreError};

/// How often a step with the store or the coordinator is tried.
const TRIES: u32 = 3;
/// The pause between two of them.
const PAUSE: Duration = Duration::from_millis(100);
/// So many TTLs (or times that the advance may take, where that is longer) a promotion may take until lower terms' work is
/// taken over. A halted election waits after that, and the jobs are brought up after that.
const TAKE_OVER: u32 = 3;
/// How often a halted election is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// Why a promotion ended early.
#[derive(Debug, thiserror::Error)]
pub(super) enum PromotionError {
    /// The tenure is ending; why was reported where it was found.
    #[error("the tenure is ending")]
    Ending,
    /// The store.
    #[error("{step}: {error}")]
    Store {
        /// The step.
        step: &'static str,
        /// What it said.
        error: StoreError,
    },
    /// The coordinator.
    #[error("{step}: {error}")]
    Memory {
        /// The step.
        step: &'static str,
        /// What it said.
        error: MemoryError,
    },
    /// It took too long.
    #[error("nothing was taken over within {} s", .0.as_secs())]
    Late(Duration),
    /// A test asked for it.
    #[cfg(feature = "chaos")]
    #[error(transparent)]
    Chaos(#[from] crate::chaos::Failed),
}

impl PromotionError {
    fn stopped(step: &'static str, why: Stop) -> Self {
        match why {
            Stop::Ending => Self::Ending,
            // Only steps that may be halted are begun while halted, and those wait instead.
            Stop::Halted => Self::Store { step, error: halted_meanwhile(step) },
            Stop::Failed(error) => Self::Store { step, error },
        }
    }
}

fn halted_meanwhile(operation: &'static str) -> StoreError {
    StoreError::Broken { operation, detail: "the election was halted in the middle of the step".to_owned() }
}

/// Promotes; answers the tenure at work.
///
/// # Errors
/// [`PromotionError`]; [`PromotionError::Ending`] where it was reported already.
pub(super) async fn promote(scope: &Arc<Scope>) -> Result<Tenure, PromotionError> {
    let settings = &scope.deps.settings;
    let within = settings.lease_ttl.max(settings.advance_within) * TAKE_OVER;
    // Passing faults are tried again without bound: here somebody else may have more luck.
    let tenure =
        tokio::time::timeout(within, take_over(scope)).await.map_err(|_| PromotionError::Late(within)).flatten()?;
    crate::point!("tenure.promotion.before_jobs", failed => failed.into());
    loop {
        if *tenure.halted.borrow() {
            wait_for_resume(&tenure).await?;
        }
        let schedule = Arc::clone(&tenure.deps.schedule.borrow());
        match bringup::bring_up(&tenure, &schedule).await {
            // What is left of it the sweep goes on with.
            Ok(_) => break,
            // Halted in between: what was brought up stays, the rest follows after the resume.
            Err(Stop::Halted) => {}
            Err(stop) => return Err(PromotionError::stopped("bring the jobs up to the schedule", stop)),
        }
    }
    crate::point!("tenure.promotion.before_work", failed => failed.into());
    let took = clock::boottime().since(scope.begun_at);
    tracing::info!(claim = %scope.claim, ms = took.as_millis(), "promoted");
    Ok(tenure)
}

/// Up to the point where nothing of lower terms goes on.
async fn take_over(scope: &Arc<Scope>) -> Result<Tenure, PromotionError> {
    crate::point!("tenure.promotion.before_compare", failed => failed.into());
    let baseline = compare(scope).await?;
    crate::point!("tenure.promotion.before_advance", failed => failed.into());
    // A session is open before the term counts, so that the first work waits for no handshake. It enters nothing before the
    // advance is through; if that fails, it ends with the scope.
    let ((), tenure) = tokio::try_join!(advance(scope), open(scope, baseline.clone()))?;
    crate::point!("tenure.promotion.after_advance", failed => failed.into());
    let worked = first_work(&tenure).await?;
    crate::point!("tenure.promotion.before_accepted", failed => failed.into());
    if worked {
        remember(scope, baseline).await?;
    }
    crate::point!("tenure.promotion.before_recover", failed => failed.into());
    recover(&tenure).await?;
    Ok(tenure)
}

/// Answers where the store stands: the baseline of the tenure's connections.
async fn compare(scope: &Scope) -> Result<Lineage, PromotionError> {
    const STEP: &str = "compare the store with what is remembered";
    let election = &scope.claim.election;
    let store = &scope.deps.store;
    let failed = |error| PromotionError::Store { step: STEP, error };
    let look = async || {
        let sent = clock::boottime();
        let health = store.health().await?;
        scope.clock.learn(sent, clock::boottime(), health.now);
        Ok::<_, StoreError>(health)
    };
    // Two servers: asked at once.
    let (remembered, health) = tokio::try_join!(retried(scope, || scope.memory.get(election)), retried(scope, look))?;
    let remembered = remembered.map_err(|error| PromotionError::Memory { step: STEP, error })?;
    let health = health.map_err(failed)?;
    if let Some(remembered) = remembered {
        let fence = retried(scope, || store.fence(election)).await?.map_err(failed)?;
        if let Err(forgotten) = accepted::compare(&remembered, fence.as_ref(), &health.lineage) {
            let resumed = retried(scope, || store.resumed_baseline(election)).await?.map_err(failed)?;
            match resumed {
                Some((lineage, at)) if accepted::is_resumed(&remembered, &health.lineage, &lineage, at) => {
                    tracing::warn!(claim = %scope.claim, %forgotten, %at, "but an operator has resumed the election since");
                }
                Some(_) | None => scope.halt_forgotten(&forgotten.to_string()).await.map_err(failed)?,
            }
        }
    }
    Ok(health.lineage)
}

async fn advance(scope: &Scope) -> Result<(), PromotionError> {
    const STEP: &str = "advance the fence";
    let settings = &scope.deps.settings;
    let advanced = retried(scope, || scope.deps.store.advance(&scope.claim, &settings.leader, settings.advance_within))
        .await?
        .map_err(|error| PromotionError::Store { step: STEP, error })?;
    match advanced {
        AdvanceOutcome::Accepted { halt } => {
            scope.deps.reports.accepted(&scope.claim);
            if let Some(halt) = halt {
                tracing::warn!(claim = %scope.claim, reason = halt.reason, by = halt.by, "accepted; the election is halted");
                scope.halted.send_replace(true);
            }
            Ok(())
        }
        AdvanceOutcome::Lost(holder) => {
            scope.fenced("advance", Some(holder));
            Err(PromotionError::Ending)
        }
    }
}

async fn open(scope: &Arc<Scope>, baseline: Lineage) -> Result<Tenure, PromotionError> {
    let limits = scope.deps.settings.limits;
    let admission: Arc<dyn Admission> = Arc::new(AtTheGate(Arc::downgrade(scope)));
    let opened =
        retried(scope, || scope.deps.store.tenure(&scope.claim, limits, baseline.clone(), Arc::clone(&admission)))
            .await?;
    let store = match opened {
        Ok(store) => store,
        Err(error) => {
            if let StoreError::Forgot { detail } = &error {
                scope.halt_forgotten(detail).await.map_err(|error| PromotionError::Store { step: "halt", error })?;
            }
            return Err(PromotionError::Store { step: "open the tenure's connections", error });
        }
    };
    // The promotion runs once per scope, so the place is empty.
    let _ = scope.store.set(Arc::clone(&store));
    Ok(Tenure::new(Arc::clone(scope), store))
}

/// The first transaction of kind *begin*. Answers whether it was let in: not where halted.
async fn first_work(tenure: &Tenure) -> Result<bool, PromotionError> {
    const STEP: &str = "first work";
    match pulse::hear(tenure).await {
        Ok(Heartbeat { pulse, .. }) => {
            if !tenure.first_work() {
                return Ok(true);
            }
            tenure.deps.reports.first_work(&tenure.claim);
            let noting = tenure.clone();
            // Best effort and off the path: the history of terms is for people.
            tenure.spawn_aside(async move {
                if let Err(error) = noting.deps.store.note_work(&noting.claim, pulse.now).await {
                    tracing::warn!(claim = %noting.claim, %error, "the first work could not be noted");
                }
            });
            Ok(true)
        }
        Err(Stop::Halted) => Ok(false),
        Err(stop) => Err(PromotionError::stopped(STEP, stop)),
    }
}

/// Remembers in the coordinator where the store stands.
async fn remember(scope: &Scope, lineage: Lineage) -> Result<(), PromotionError> {
    let record = record_of(scope, lineage);
    retried(scope, || scope.memory.put(&scope.claim, &record))
        .await?
        .map_err(|error| PromotionError::Memory { step: "remember what the store accepted", error })
}

/// What is remembered of a tenure.
pub(super) fn record_of(scope: &Scope, lineage: Lineage) -> AcceptedRecord {
    let Claim { term, tenure_id, .. } = scope.claim;
    AcceptedRecord { term, tenure_id, lineage, at: scope.clock.at(clock::boottime()) }
}

async fn recover(tenure: &Tenure) -> Result<(), PromotionError> {
    const STEP: &str = "recover what lower terms left";
    let recovery = tenure
        .record("recover", || tenure.store.recover())
        .await
        .map_err(|stop| PromotionError::stopped(STEP, stop))?;
    note_promotion(tenure, recovery.clone());
    let Recovery { calls_unknown, runs_set_aside, runs_taken_over } = recovery;
    if calls_unknown > 0 || runs_taken_over > 0 {
        tracing::info!(claim = %tenure.claim, calls_unknown, runs_taken_over, "taken over from lower terms");
    }
    for run in runs_set_aside {
        tracing::error!(claim = %tenure.claim, run, "a run is set aside: its leaders died over it without one unit ending");
    }
    Ok(())
}

/// Notes how the term came about and what was taken over. Best effort and off the path: the history of terms is for people.
fn note_promotion(tenure: &Tenure, recovery: Recovery) {
    let noting = tenure.clone();
    tenure.spawn_aside(async move {
        let Win { handed_over, vacant_for, at } = noting.win;
        let promotion = Promotion { handed_over, vacant_for, won_ago: clock::boottime().since(at), recovery };
        if let Err(error) = noting.deps.store.note_promotion(&noting.claim, &promotion).await {
            tracing::warn!(claim = %noting.claim, %error, "the promotion could not be noted");
        }
    });
}

/// Waits until an operator resumes, then makes what is there the new baseline.
async fn wait_for_resume(tenure: &Tenure) -> Result<(), PromotionError> {
    while !first_work(tenure).await? {
        tenure.sleep(LOOK).await.map_err(|_| PromotionError::Ending)?;
    }
    tenure.halted.send_replace(false);
    let lineage = tenure
        .record("lineage", || tenure.store.lineage())
        .await
        .map_err(|stop| PromotionError::stopped("read the new baseline", stop))?;
    tracing::warn!(claim = %tenure.claim, "the election was resumed");
    remember(tenure.scope(), lineage).await
}

/// Tries a step a few times. Its own error is left to the caller.
async fn retried<T, E, F>(scope: &Scope, step: impl Fn() -> F) -> Result<Result<T, E>, PromotionError>
where
    F: Future<Output = Result<T, E>>,
{
    let mut tries = 1;
    loop {
        scope.pass_gate().await.map_err(|_| PromotionError::Ending)?;
        match step().await {
            Err(_) if tries < TRIES => {
                tries += 1;
                scope.sleep(PAUSE).await.map_err(|_| PromotionError::Ending)?;
            }
            outcome => return Ok(outcome),
        }
    }
}

//! One run from planning to its end.
//!
//! `planning` until all units are in; then batches or calls until nothing is due; then the end, or a wait for the first
//! retry. A halt or the tenure's end leaves it where it is: whoever goes on finds in the store what is left. One that is given up
//! (its leaders died, or it cannot be planned) is brought to its end in pages, and nothing else is done with it.

use std::sync::Arc;
use std::time::Duration;

use super::scope::{Stop, Tenure};
use super::trace::broken_off;
use super::{backoff, batches, outside};
use crate::clock;
use crate::domain::run::RunState;
use crate::settlement::http::StoreTime;
use crate::settlement::{Handler, Lent, Shape};
use crate::store::{FinishOutcome, GiveUpOutcome, OpenRun, PlanOutcome};
use crate::telemetry::Work;

/// Units planned in one transaction.
const PLAN_PAGE: u32 = 5_000;
/// Units of a run that is given up which are taken out in one transaction.
const GIVE_UP_PAGE: u32 = 5_000;
/// The longest wait before a run's pending units are looked at again: an operator may have set some back.
const LONGEST_WAIT: Duration = Duration::from_secs(2);
/// The shortest, where some are due but taken by nobody.
const SHORTEST_WAIT: Duration = Duration::from_millis(10);

/// Works on a run until it ends or cannot go on.
///
/// # Errors
/// [`Stop`].
pub(super) async fn settle_run(tenure: Tenure, run: OpenRun) -> Result<(), Stop> {
    let began = clock::boottime();
    let done = if let Some(why) = &run.given_up {
        tracing::warn!(claim = %tenure.claim, job = %run.definition.name, run = run.id, why, "the run is being given up");
        give_up(&tenure, &run).await
    } else {
        if run.state == RunState::Planning {
            tenure.traced_tick(&run);
        }
        settle(&tenure, &run).await
    };
    let came = match &done {
        Ok(state) => (state.as_str(), *state == RunState::CompleteSetAside),
        Err(stop) => broken_off(stop),
    };
    tenure.traced(Work::Run, (&run.definition.name, run.id), began, came);
    done.map(|_state| ())
}

/// Answers the state that it was left in.
async fn settle(tenure: &Tenure, run: &OpenRun) -> Result<RunState, Stop> {
    tenure.begin("begin_work", || tenure.store.begin_work(run.id)).await?;
    let handler = handler(tenure, run);
    if run.state == RunState::Planning {
        let began = clock::boottime();
        let planned = plan(tenure, run, &handler).await;
        let came = match &planned {
            Ok(None) => ("planned", false),
            Ok(Some(state)) => (state.as_str(), true),
            Err(stop) => broken_off(stop),
        };
        tenure.traced(Work::Plan, (&run.definition.name, run.id), began, came);
        if let Some(state) = planned? {
            return Ok(state);
        }
    }
    let mut stalled = 0;
    let mut door = outside::Door::default();
    loop {
        match &handler.shape {
            Shape::InStore(effect) => batches::drain(tenure, run, effect).await?,
            Shape::Outside(outside) => outside::drain(tenure, run, outside, &mut door).await?,
        }
        match tenure.begin("finish_run", || tenure.store.finish_run(run.id)).await? {
            FinishOutcome::Finished(state) => {
                finished(tenure, run, state);
                return Ok(state);
            }
            FinishOutcome::NotOpen(state) => {
                tracing::info!(claim = %tenure.claim, run = run.id, state = state.as_str(), "the run is not open any more");
                return Ok(state);
            }
            FinishOutcome::Pending { fresh, next_in, .. } => {
                // Units never tried that nobody took: another batch held them, or they were put back.
                stalled = if fresh > 0 { stalled + 1 } else { 0 };
                let wait = match stalled {
                    0 => next_in.unwrap_or(LONGEST_WAIT).clamp(SHORTEST_WAIT, LONGEST_WAIT),
                    _ => backoff::wait(stalled, clock::random_u64()),
                };
                // What is due and may not be taken yet is not looked for again and again.
                tenure.sleep(wait.max(door.quiet_for()).min(LONGEST_WAIT)).await?;
            }
        }
    }
}

fn handler(tenure: &Tenure, run: &OpenRun) -> Handler {
    let scope = Arc::clone(tenure.scope());
    let store_time = move || {
        let at = clock::boottime();
        scope.clock.at(at).map(|store| StoreTime { store, at })
    };
    Handler::of(
        run,
        &Lent {
            claim: &tenure.claim,
            stop: &tenure.ended,
            deployment: tenure.store.deployment(),
            deadline: tenure.gate.deadline(),
            store_time: Arc::new(store_time),
            receivers: &tenure.deps.receivers,
        },
    )
}

/// Plans page by page. `None`: the run is open then; else the state that it is in.
async fn plan(tenure: &Tenure, run: &OpenRun, handler: &Handler) -> Result<Option<RunState>, Stop> {
    let mut after: Option<String> = None;
    loop {
        crate::point!("tenure.run.before_plan_page");
        // A page is as heavy as a batch: many runs that plan at once must not take the sweep's connection.
        let permit = tenure.permit().await?;
        let page = tenure
            .begin("plan_page", || tenure.store.plan_page(run, &handler.plan, after.as_deref(), PLAN_PAGE))
            .await?;
        match page {
            PlanOutcome::Planned { next: Some(next), .. } => after = Some(next),
            PlanOutcome::Planned { next: None, .. } | PlanOutcome::NotPlanning(RunState::Open) => return Ok(None),
            PlanOutcome::SetAside { error } => {
                tracing::error!(claim = %tenure.claim, job = %run.definition.name, run = run.id, %error, "the run cannot be planned and is set aside");
                // The next page takes a permit of its own.
                drop(permit);
                return give_up(tenure, run).await.map(Some);
            }
            PlanOutcome::NotPlanning(state) => return Ok(Some(state)),
        }
    }
}

/// Brings a run that is given up to its end, page by page: one statement over all of its units would run into its time-out, again
/// and again. Answers the state that it is in.
async fn give_up(tenure: &Tenure, run: &OpenRun) -> Result<RunState, Stop> {
    let mut from = 0;
    loop {
        let _permit = tenure.permit().await?;
        match tenure.begin("give_up", || tenure.store.give_up(run.id, from, GIVE_UP_PAGE)).await? {
            GiveUpOutcome::Going { after } => from = after,
            GiveUpOutcome::Ended(state) => {
                finished(tenure, run, state);
                return Ok(state);
            }
            GiveUpOutcome::NotGivenUp(state) => return Ok(state),
        }
    }
}

fn finished(tenure: &Tenure, run: &OpenRun, state: RunState) {
    let now = tenure.clock.at(clock::boottime());
    let took = now.and_then(|now| (now - run.opened_at).to_std().ok()).unwrap_or(Duration::ZERO);
    let job = &run.definition.name;
    tenure.deps.observer.run_ended(job, state, took);
    tracing::info!(claim = %tenure.claim, %job, run = run.id, state = state.as_str(), ms = took.as_millis(), "the run ended");
}

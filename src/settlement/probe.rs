//! The handler of the tests, in both shapes: waits, computes, fails by key, panics, wedges every worker thread, as its
//! definition says. Not compiled into a release.
//!
//! What fails once fails until its unit was charged alone; that is remembered per run and tenure, in the process, so after a
//! takeover it may fail once more.

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio_util::sync::CancellationToken;

use super::{CallOutcome, Departure, Handler, OutsideHandler, Shape, guarded};
use crate::domain::job::{ProbeDefinition, ProbeShape};
use crate::domain::{Claim, Moment, TenureId};
use crate::store::{BatchError, BatchHook, Call, Effect, OpenRun, PlanSource};

pub(super) fn handler(definition: &ProbeDefinition, run: &OpenRun, claim: &Claim, stop: &CancellationToken) -> Handler {
    let probe =
        Arc::new(Probe { definition: definition.clone(), claim: claim.clone(), stop: stop.clone(), run: run.id });
    let keys = (0..definition.units).map(|number| format!("unit-{number:05}")).collect();
    let shape = match definition.shape {
        ProbeShape::InStore => Shape::InStore(Effect::Mark(guarded(probe))),
        ProbeShape::Outside => Shape::Outside(probe),
    };
    Handler { plan: PlanSource::Keys(keys), shape }
}

struct Probe {
    definition: ProbeDefinition,
    claim: Claim,
    stop: CancellationToken,
    run: i64,
}

/// What has failed once: tenure, run, key. A run may be taken up several times in a tenure.
static FAILED_ONCE: Mutex<BTreeSet<(TenureId, i64, String)>> = Mutex::new(BTreeSet::new());

impl Probe {
    async fn take_time(&self) {
        if self.definition.wait_ms > 0 {
            tokio::time::sleep(Duration::from_millis(self.definition.wait_ms)).await;
        }
        if self.definition.spin_ms > 0 {
            spin(Duration::from_millis(self.definition.spin_ms), self.stop.clone()).await;
        }
    }

    /// Whether one of the keys is to fail, with the words for it. `alone`: the attempt is charged.
    fn failure(&self, keys: &[String], alone: bool) -> Option<String> {
        if keys.iter().any(|key| self.definition.fail.contains(key)) {
            return Some("probe: set to fail".to_owned());
        }
        let mut failed = FAILED_ONCE.lock().unwrap_or_else(PoisonError::into_inner);
        let of = |key: &String| (self.claim.tenure_id, self.run, key.clone());
        let key = keys.iter().find(|key| self.definition.fail_once.contains(*key) && !failed.contains(&of(key)))?;
        if alone {
            failed.insert(of(key));
        }
        Some("probe: set to fail once".to_owned())
    }

    async fn misbehave(&self, keys: &[String]) {
        if keys.iter().any(|key| self.definition.wedge.contains(key)) {
            wedge().await;
        }
        assert!(!keys.iter().any(|key| self.definition.panic.contains(key)), "probe: set to panic");
    }

    fn log(&self, call: &Call) -> std::io::Result<()> {
        let Some(path) = &self.definition.log_file else { return Ok(()) };
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path)?;
        // One write, so that lines of several processes do not mix.
        let Claim { term, tenure_id, .. } = &self.claim;
        file.write_all(format!("{} {term} {tenure_id} {}\n", call.key, call.idempotency_key).as_bytes())
    }
}

#[async_trait]
impl BatchHook for Probe {
    async fn run(&self, keys: &[String]) -> Result<(), BatchError> {
        self.take_time().await;
        self.misbehave(keys).await;
        match self.failure(keys, keys.len() == 1) {
            Some(message) => Err(BatchError { message, permanent: false }),
            None => Ok(()),
        }
    }
}

#[async_trait]
impl OutsideHandler for Probe {
    fn is_idempotent(&self) -> bool {
        self.definition.idempotent
    }

    async fn call(&self, call: &Call, _taken_at: Moment, departure: &Departure) -> CallOutcome {
        let keys = [call.key.clone()];
        self.misbehave(&keys).await;
        if let Some(error) = self.failure(&keys, true) {
            return CallOutcome::Failed { error, permanent: false };
        }
        if departure.depart().await.is_err() {
            return CallOutcome::NotSent;
        }
        if let Err(error) = self.log(call) {
            return CallOutcome::Unknown { error: format!("probe: log file: {error}") };
        }
        self.take_time().await;
        CallOutcome::Done
    }
}

/// Computes without yielding, on the blocking pool, until its time is over or the tenure has ended.
async fn spin(time: Duration, stop: CancellationToken) {
    let over = stop.child_token();
    // Also where this future is dropped.
    let _over = over.clone().drop_guard();
    let computed = tokio::task::spawn_blocking({
        let over = over.clone();
        move || {
            let mut state = 1_u64;
            while !over.is_cancelled() {
                for _ in 0..10_000 {
                    state = std::hint::black_box(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
                }
            }
        }
    });
    tokio::time::sleep(time).await;
    over.cancel();
    // It cannot fail: it neither panics nor is it cancelled.
    let _ = computed.await;
}

/// Blocks all worker threads for good: the one kind of fault that only the end of the process mends.
#[expect(clippy::disallowed_methods, reason = "tasks that are meant never to end have no owner that could join them")]
async fn wedge() {
    let workers = tokio::runtime::Handle::current().metrics().num_workers();
    for _ in 0..workers.saturating_mul(2) {
        tokio::spawn(async {
            loop {
                std::thread::park();
            }
        });
    }
    std::future::pending::<()>().await;
}

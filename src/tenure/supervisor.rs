//! The supervisor: carries out leadership's orders on the worker runtime, one task per tenure, and beats for the workers.
//!
//! Invariants: at most one tenure per election at a time; every tenure that was begun reports its end exactly once, also
//! where it panicked; the supervisor returns only when every task of it has ended.
//!
//! Deliberately absent: any decision. Whether a tenure goes on after a fault is leadership's to say; it is told.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use super::TenureDeps;
use super::edge::{Begin, Ending, Order};
use super::payouts::payouts;
use super::promotion::{PromotionError, promote};
use super::requests::requests;
use super::scope::{Scope, Tenure};
use super::sweep::sweep;
use super::teardown::{EndOrder, tear_down};
use super::timers::Timers;
use super::work::work;
use crate::domain::{Claim, ElectionName, JobName, Term};

/// Between two beats of the workers.
const BEAT: Duration = Duration::from_secs(1);

/// A tenure under way.
struct Running {
    claim: Claim,
    end: watch::Sender<Option<EndOrder>>,
}

/// Carries out orders.
pub struct Supervisor {
    deps: Arc<TenureDeps>,
    running: BTreeMap<ElectionName, Running>,
    tasks: JoinSet<Option<Claim>>,
}

impl Supervisor {
    /// A supervisor without a tenure.
    #[must_use]
    pub fn new(deps: Arc<TenureDeps>) -> Self {
        Self { deps, running: BTreeMap::new(), tasks: JoinSet::new() }
    }

    /// Carries out orders until there are no more; then ends what still runs, abruptly, and waits for all of it.
    pub async fn run(mut self, mut orders: mpsc::UnboundedReceiver<Order>) {
        let over = CancellationToken::new();
        self.tasks.spawn(beat(Arc::clone(&self.deps), over.clone()));
        loop {
            tokio::select! {
                biased;
                order = orders.recv() => match order {
                    Some(order) => self.carry_out(order),
                    None => break,
                },
                Some(ended) = self.tasks.join_next() => self.joined(ended),
            }
        }
        over.cancel();
        for running in self.running.values() {
            let reason = "leadership is over".to_owned();
            running.end.send_replace(Some(EndOrder { ending: Ending::Abrupt, reason }));
        }
        while let Some(ended) = self.tasks.join_next().await {
            self.joined(ended);
        }
    }

    fn joined(&mut self, ended: Result<Option<Claim>, tokio::task::JoinError>) {
        match ended {
            Ok(Some(claim)) => {
                if self.running.get(&claim.election).is_some_and(|running| running.claim == claim) {
                    self.running.remove(&claim.election);
                }
                // Only now: the order to begin the next may follow at once.
                self.deps.reports.ended(&claim);
            }
            Ok(None) => {}
            // It could not report its end; leadership's teardown budget ends the process.
            Err(error) => tracing::error!(%error, "a tenure's task failed"),
        }
    }

    fn carry_out(&mut self, order: Order) {
        match order {
            Order::Begin(begin) => self.begin(begin),
            Order::End { claim, ending, reason } => match self.running.get(&claim.election) {
                Some(running) if running.claim == claim => {
                    running.end.send_replace(Some(EndOrder { ending, reason }));
                }
                // It has ended and said so, or never began.
                Some(_) | None => self.deps.reports.ended(&claim),
            },
            Order::ReadFence { election } => {
                self.tasks.spawn(read_fence(Arc::clone(&self.deps), election));
            }
        }
    }

    fn begin(&mut self, begin: Begin) {
        let claim = begin.claim.clone();
        if let Some(running) = self.running.get(&claim.election) {
            tracing::error!(%claim, running = %running.claim, "a tenure of this election is still under way");
            self.deps.reports.promotion_failed(&claim, "an earlier tenure of this election has not ended here");
            return;
        }
        let (end, ended) = watch::channel(None);
        let scope = Arc::new(Scope::new(begin, Arc::clone(&self.deps)));
        self.running.insert(claim.election.clone(), Running { claim, end });
        self.tasks.spawn(hold(scope, ended));
    }
}

/// One tenure, from its begin to its end.
async fn hold(scope: Arc<Scope>, mut orders: watch::Receiver<Option<EndOrder>>) -> Option<Claim> {
    let leading = scope.tracker.spawn(scope.ended.clone().run_until_cancelled_owned(lead(Arc::clone(&scope))));
    let watching = Arc::clone(&scope);
    scope.tracker.spawn(async move {
        if leading.await.is_err_and(|error| error.is_panic()) {
            watching.fault("a task of the tenure panicked");
        }
    });
    // Also after a fault of its own: leadership is told and orders the end.
    let order = loop {
        if let Some(order) = orders.borrow_and_update().clone() {
            break order;
        }
        if orders.changed().await.is_err() {
            break EndOrder { ending: Ending::Abrupt, reason: "leadership is over".to_owned() };
        }
    };
    tear_down(&scope, &order, &mut orders).await;
    Some(scope.claim.clone())
}

/// Promotes, then keeps the tenure's tasks going until it stops.
async fn lead(scope: Arc<Scope>) {
    let tenure = match promote(&scope).await {
        Ok(tenure) => tenure,
        Err(PromotionError::Ending) => return,
        Err(error) => return scope.promotion_failed(&error.to_string()),
    };
    let (timers, fired) = match Timers::start() {
        Ok(started) => started,
        Err(error) => return scope.promotion_failed(&format!("start the timers: {error}")),
    };
    let mut tasks = begin_all(&tenure, timers, fired);
    while let Some(ended) = tasks.next().await {
        match ended {
            Ok(_) if scope.stopping.is_cancelled() => {}
            // Half a leader is worse than none.
            Ok(_) => scope.fault("a task of the tenure ended by itself"),
            Err(error) => scope.fault(&format!("a task of the tenure failed: {error}")),
        }
    }
}

/// The tasks of a tenure that is promoted. None of them waits for another.
pub(super) fn begin_all(
    tenure: &Tenure,
    timers: Timers,
    fired: mpsc::Receiver<JobName>,
) -> FuturesUnordered<JoinHandle<Option<()>>> {
    let sweeping = tenure.spawn(sweep(tenure.clone(), timers, fired));
    let working = tenure.spawn(work(tenure.clone()));
    let paying = tenure.spawn(payouts(tenure.clone()));
    let serving = tenure.spawn(requests(tenure.clone()));
    FuturesUnordered::from_iter([sweeping, working, paying, serving])
}

async fn beat(deps: Arc<TenureDeps>, over: CancellationToken) -> Option<Claim> {
    while over.run_until_cancelled(tokio::time::sleep(BEAT)).await.is_some() {
        deps.reports.beat();
    }
    None
}

async fn read_fence(deps: Arc<TenureDeps>, election: ElectionName) -> Option<Claim> {
    let fence = deps.store.fence(&election).await;
    let term =
        fence.map(|fence| fence.map_or(Term::NONE, |fence| fence.holder.term)).map_err(|error| error.to_string());
    deps.reports.fence_term(&election, term);
    None
}

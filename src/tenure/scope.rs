//! The scope of one tenure: its claim, tokens, tracker and store, and the one place where the store's answers are taken in.
//!
//! Invariants:
//! - Whatever the operation, a refusal by the fence is reported and ends the tenure here, before the caller goes on.
//! - A transaction that begins something passes the gate first, and once more right before BEGIN (`admission`); one
//!   that records an outcome does not, for what has begun ends by itself and the fence covers it.
//! - After a passing fault the same is tried again with backoff as long as the tenure lasts.

use std::future::Future;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::edge::{Begin, Gate, GateClosed, Win};
use super::leave::Unhalted;
use super::store_clock::StoreClock;
use super::{AcceptedMemory, TenureDeps, backoff};
use crate::clock;
use crate::domain::{Claim, Moment};
use crate::store::{Actor, Entered, FenceHolder, Fenced, Halt, StoreError, TenureStore};

/// So many TTLs without a transaction that entered the fence, and the tenure is over: somebody else may have more luck.
const TTLS_WITHOUT_ENTRY: u32 = 3;

/// But no sooner: an operator's halt may wait for the fence this long, and everything else behind it.
const WITHOUT_ENTRY_AT_LEAST: Duration = Duration::from_secs(75);

/// Why work does not go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
    /// The tenure is ending.
    Ending,
    /// The election is halted.
    Halted,
    /// This one thing failed in a way that no retry mends; others may go on.
    Failed(StoreError),
}

/// What belongs to one tenure from its begin to its end.
pub struct Scope {
    /// What is presented with every transaction.
    pub claim: Claim,
    /// What all tenures share.
    pub deps: Arc<TenureDeps>,
    /// The session's gate.
    pub gate: Arc<dyn Gate>,
    /// What the coordinator remembers.
    pub memory: Arc<dyn AcceptedMemory>,
    /// Cancelled first: nothing new begins.
    pub stopping: CancellationToken,
    /// Cancelled once the drain is over: calls without an answer are recorded as unknown.
    pub answers: CancellationToken,
    /// Cancelled last: everything is dropped where it stands.
    pub ended: CancellationToken,
    /// Every task of the tenure.
    pub tracker: TaskTracker,
    /// Once the fence was advanced.
    pub store: OnceLock<Arc<dyn TenureStore>>,
    /// Wakes the work loop.
    pub work: Notify,
    /// Wakes the sending of payouts.
    pub payouts: Notify,
    /// Wakes the serving of requests.
    pub requests: Notify,
    /// Whether the store last said that the election is halted.
    pub halted: watch::Sender<bool>,
    /// When it began.
    pub begun_at: Moment,
    /// How it came about.
    pub win: Win,
    pub(super) clock: StoreClock,
    /// Held while the halt is being read for calls that want to leave.
    pub(super) unhalted: tokio::sync::Mutex<Option<Unhalted>>,
    own_permits: Semaphore,
    /// When a transaction last entered the fence.
    entered_at: Mutex<Moment>,
    reported: AtomicBool,
    worked: AtomicBool,
}

impl Scope {
    /// The scope of a tenure that begins now.
    #[must_use]
    pub fn new(begin: Begin, deps: Arc<TenureDeps>) -> Self {
        Self {
            claim: begin.claim,
            gate: begin.gate,
            memory: begin.memory,
            win: begin.win,
            deps,
            stopping: CancellationToken::new(),
            answers: CancellationToken::new(),
            ended: CancellationToken::new(),
            tracker: TaskTracker::new(),
            store: OnceLock::new(),
            work: Notify::new(),
            payouts: Notify::new(),
            requests: Notify::new(),
            halted: watch::Sender::new(false),
            begun_at: clock::boottime(),
            clock: StoreClock::default(),
            unhalted: tokio::sync::Mutex::new(None),
            own_permits: Semaphore::new(1),
            entered_at: Mutex::new(clock::boottime()),
            reported: AtomicBool::new(false),
            worked: AtomicBool::new(false),
        }
    }

    /// The first fault of a tenure is the one that is reported; what follows from it is not.
    fn first_report(&self) -> bool {
        !self.reported.swap(true, Ordering::SeqCst)
    }

    /// Whether this is the first time that it is asked.
    pub(super) fn first_work(&self) -> bool {
        !self.worked.swap(true, Ordering::SeqCst)
    }

    /// The store says that the election is halted.
    pub(super) fn found_halted(&self, halt: &Halt) {
        if !self.halted.send_replace(true) {
            tracing::warn!(claim = %self.claim, reason = halt.reason, by = halt.by, "the election is halted");
        }
    }

    /// The store refused the claim: nothing new begins from here on.
    pub fn fenced(&self, operation: &'static str, found: Option<FenceHolder>) {
        self.deps.observer.fencing_reject(operation);
        self.stopping.cancel();
        if self.first_report() {
            let (term, tenure) = (found.map(|holder| holder.term.get()), found.map(|holder| holder.tenure_id.0));
            tracing::warn!(claim = %self.claim, operation, found_term = term, found_tenure = ?tenure, "fenced off");
            self.deps.reports.fenced(&self.claim, found);
        }
    }

    /// The tenure cannot go on by a fault of its own.
    pub fn fault(&self, why: &str) {
        self.stopping.cancel();
        if self.first_report() {
            tracing::error!(claim = %self.claim, why, "the tenure failed");
            self.deps.reports.fault(&self.claim, why);
        }
    }

    /// A step of the promotion failed.
    pub fn promotion_failed(&self, why: &str) {
        self.stopping.cancel();
        if self.first_report() {
            tracing::error!(claim = %self.claim, why, "the promotion failed");
            self.deps.reports.promotion_failed(&self.claim, why);
        }
    }

    /// Halts the election because the store was found to have forgotten.
    ///
    /// # Errors
    /// The halt itself failed.
    pub async fn halt_forgotten(&self, why: &str) -> Result<(), StoreError> {
        tracing::error!(claim = %self.claim, why, "the election is halted");
        let actor = Actor { user: "bursar".to_owned(), host: self.deps.settings.leader.host.clone() };
        self.deps.store.halt(&self.claim.election, why, &actor).await.map(|_| ())
    }

    /// Passes the gate: waits while suspect.
    ///
    /// # Errors
    /// [`Stop::Ending`] once nothing may begin any more.
    pub async fn pass_gate(&self) -> Result<(), Stop> {
        if self.stopping.is_cancelled() {
            return Err(Stop::Ending);
        }
        tokio::select! {
            biased;
            passed = self.gate.pass() => match passed {
                Ok(()) if !self.stopping.is_cancelled() => Ok(()),
                Ok(()) => Err(Stop::Ending),
                Err(GateClosed) => {
                    self.stopping.cancel();
                    // Mostly the order to end is on its way, and this report means nothing any more. But the session may
                    // have been renewed in the very moment at which a worker found the gate closed: then nobody else would
                    // ever end a tenure that has stopped.
                    if self.first_report() {
                        self.deps.reports.fault(&self.claim, "the gate was found closed");
                    }
                    Err(Stop::Ending)
                }
            },
            () = self.stopping.cancelled() => Err(Stop::Ending),
        }
    }

    /// Sleeps, at most until nothing new may begin.
    ///
    /// # Errors
    /// [`Stop::Ending`].
    pub async fn sleep(&self, time: Duration) -> Result<(), Stop> {
        tokio::select! {
            biased;
            () = self.stopping.cancelled() => Err(Stop::Ending),
            () = tokio::time::sleep(time) => Ok(()),
        }
    }

    /// A transaction has entered the fence, or was kept out by a halt.
    fn note_entry(&self) {
        *self.entered_at.lock().unwrap_or_else(PoisonError::into_inner) = clock::boottime();
    }

    /// Ends a tenure that no transaction gets in for: it would hold the lease and do nothing.
    fn look_for_entry(&self, operation: &'static str, error: &StoreError) -> Result<(), Stop> {
        let last = *self.entered_at.lock().unwrap_or_else(PoisonError::into_inner);
        let without = clock::boottime().since(last);
        let bound = (self.deps.settings.lease_ttl * TTLS_WITHOUT_ENTRY).max(WITHOUT_ENTRY_AT_LEAST);
        if without <= bound {
            return Ok(());
        }
        self.fault(&format!(
            "no transaction entered the fence for {} s, last: {operation}: {error}",
            without.as_secs()
        ));
        Err(Stop::Ending)
    }

    /// A connection's worth of work: the tenure's own, or one of the process.
    pub(super) async fn permit(&self) -> Result<tokio::sync::SemaphorePermit<'_>, Stop> {
        tokio::select! {
            biased;
            () = self.stopping.cancelled() => Err(Stop::Ending),
            own = self.own_permits.acquire() => own.map_err(|_| Stop::Ending),
            shared = self.deps.permits.acquire() => shared.map_err(|_| Stop::Ending),
        }
    }
}

/// A tenure whose claim the store has accepted.
#[derive(Clone)]
pub struct Tenure {
    scope: Arc<Scope>,
    /// The store under its claim.
    pub store: Arc<dyn TenureStore>,
}

impl Deref for Tenure {
    type Target = Scope;

    fn deref(&self) -> &Scope {
        &self.scope
    }
}

impl Tenure {
    /// Puts scope and store together.
    #[must_use]
    pub fn new(scope: Arc<Scope>, store: Arc<dyn TenureStore>) -> Self {
        Self { scope, store }
    }

    /// Its scope.
    #[must_use]
    pub const fn scope(&self) -> &Arc<Scope> {
        &self.scope
    }

    /// Runs a task of the tenure: on its tracker, dropped where it stands once the tenure has ended.
    pub fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> tokio::task::JoinHandle<Option<T>> {
        self.tracker.spawn(self.ended.clone().run_until_cancelled_owned(work))
    }

    /// Runs a task that nobody waits for: dropped as soon as the tenure stops, so that no hand-over waits for it.
    pub fn spawn_aside(&self, work: impl Future<Output = ()> + Send + 'static) -> tokio::task::JoinHandle<Option<()>> {
        self.tracker.spawn(self.stopping.clone().run_until_cancelled_owned(work))
    }

    /// Takes in an answer of the store. What is left for the caller is what was done, or a fault that concerns only it.
    ///
    /// # Errors
    /// [`Stop`], after what it means for the whole tenure was done.
    pub async fn enter<T>(&self, operation: &'static str, answer: Fenced<T>) -> Result<Result<T, StoreError>, Stop> {
        match answer {
            Ok(Entered::Mine(done)) => {
                self.note_entry();
                Ok(Ok(done))
            }
            Ok(Entered::Fenced(found)) => {
                crate::mutant!("fenced.taken-for-nothing-due" => return Err(Stop::Halted););
                self.fenced(operation, found);
                Err(Stop::Ending)
            }
            Ok(Entered::Halted(halt)) => {
                self.note_entry();
                self.found_halted(&halt);
                Err(Stop::Halted)
            }
            Err(StoreError::Ended { .. }) => Err(Stop::Ending),
            Err(error @ StoreError::Forgot { .. }) => {
                let halted = self.halt_forgotten(&error.to_string()).await;
                self.fault(&match halted {
                    Ok(()) => error.to_string(),
                    Err(failed) => format!("{error}; and the halt failed: {failed}"),
                });
                Err(Stop::Ending)
            }
            Err(error @ (StoreError::ReadOnly { .. } | StoreError::Schema { .. } | StoreError::Unfit { .. })) => {
                self.fault(&error.to_string());
                Err(Stop::Ending)
            }
            Err(
                error @ (StoreError::Unreachable { .. }
                | StoreError::TryAgain { .. }
                | StoreError::StatementTimeout { .. }
                | StoreError::TimedOut { .. }
                | StoreError::Unknown { .. }
                | StoreError::Broken { .. }),
            ) => Ok(Err(error)),
        }
    }

    /// A transaction that begins something: behind the gate, again with backoff after a passing fault.
    ///
    /// # Errors
    /// [`Stop`].
    pub async fn begin<T, F>(&self, operation: &'static str, call: impl Fn() -> F + Send) -> Result<T, Stop>
    where
        F: Future<Output = Fenced<T>> + Send,
        T: Send,
    {
        let mut failures = 0;
        loop {
            self.pass_gate().await?;
            match self.enter(operation, call().await).await? {
                Ok(done) => return Ok(done),
                Err(error) => {
                    failures += 1;
                    self.sleep(self.again(operation, error, failures)?).await?;
                }
            }
        }
    }

    /// A transaction that records an outcome: past the gate, until it is done or the tenure is over.
    ///
    /// # Errors
    /// [`Stop`]; never [`Stop::Halted`] of a store that keeps its contract.
    pub async fn record<T, F>(&self, operation: &'static str, call: impl Fn() -> F + Send) -> Result<T, Stop>
    where
        F: Future<Output = Fenced<T>> + Send,
        T: Send,
    {
        let mut failures = 0;
        loop {
            match self.enter(operation, call().await).await? {
                Ok(done) => return Ok(done),
                Err(error) => {
                    failures += 1;
                    // Not ended by stopping: the outcome of what has begun is still recorded while the drain lasts.
                    tokio::time::sleep(self.again(operation, error, failures)?).await;
                }
            }
        }
    }

    /// How long to wait before the same is tried again.
    fn again(&self, operation: &'static str, error: StoreError, failures: u32) -> Result<Duration, Stop> {
        if !error.is_passing() {
            return Err(Stop::Failed(error));
        }
        self.look_for_entry(operation, &error)?;
        let wait = backoff::wait(failures, clock::random_u64());
        tracing::warn!(claim = %self.claim, operation, failures, %error, "the store failed; trying again");
        Ok(wait)
    }
}

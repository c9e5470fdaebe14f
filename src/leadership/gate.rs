//! The gate: what stands before BEGIN and before the first byte of a request.
//!
//! A gate answers from the boot-time clock against the session's deadline, at the moment of the call. So a process that was
//! stopped and continued is told no at once, before any thread of it has had the time to notice.
//!
//! Invariants:
//! - A session that is suspect holds: [`Gate::pass`] waits, at most until the deadline.
//! - A closed gate never opens again.
//!
//! Deliberately absent: safety. A process may be stopped right behind a gate; the fence covers that.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{Notify, watch};

use crate::domain::Moment;

/// While held, a gate looks at the clock at least this often: timers of the runtime do not count through a suspend.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// The clock that a gate asks.
pub type Clock = Arc<dyn Fn() -> Moment + Send + Sync>;

/// The gate is closed for good: the tenure is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the tenure is over: its session is lost, or it was told to end")]
pub struct GateClosed;

/// Why a gate cannot be passed at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GateRefusal {
    /// The session is suspect: ask again.
    #[error("the session is suspect")]
    Held,
    /// See [`GateClosed`].
    #[error("the tenure is over")]
    Closed,
}

/// The window of one session, as gates see it. Written by the session's thread alone.
pub(super) struct SessionWindow {
    deadline: AtomicU64,
    fresh_until: AtomicU64,
    /// Wakes those who wait at the gate, in the order in which they came.
    changed: Notify,
    /// The same deadline, for those who have to hand it on.
    announced: watch::Sender<Moment>,
}

/// What the session's thread knows of one tenure. Written by it alone.
#[derive(Default)]
pub(super) struct TenureFlags {
    accepted: AtomicBool,
    closed: AtomicBool,
}

fn nanos(moment: Moment) -> u64 {
    u64::try_from(moment.since_boot().as_nanos()).unwrap_or(u64::MAX)
}

impl SessionWindow {
    /// A window that is closed until opened.
    pub(super) fn new() -> Self {
        let (announced, _) = watch::channel(Moment::BOOT);
        Self { deadline: AtomicU64::new(0), fresh_until: AtomicU64::new(0), changed: Notify::new(), announced }
    }

    pub(super) fn open(&self, deadline: Moment, fresh_until: Moment) {
        self.deadline.store(nanos(deadline), Ordering::SeqCst);
        self.fresh_until.store(nanos(fresh_until), Ordering::SeqCst);
        self.changed.notify_waiters();
        self.announced.send_replace(deadline);
    }

    pub(super) fn hold(&self) {
        self.fresh_until.store(0, Ordering::SeqCst);
        self.changed.notify_waiters();
    }

    pub(super) fn close(&self) {
        self.deadline.store(0, Ordering::SeqCst);
        self.hold();
        self.announced.send_replace(Moment::BOOT);
    }
}

/// Before BEGIN, before the first byte. Cheap to clone; clones are the same gate.
#[derive(Clone)]
pub struct Gate {
    window: Arc<SessionWindow>,
    tenure: Arc<TenureFlags>,
    clock: Clock,
}

impl std::fmt::Debug for Gate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gate").field("leads_now", &self.leads_now()).field("remaining", &self.remaining()).finish()
    }
}

impl Gate {
    pub(super) fn new(window: Arc<SessionWindow>, tenure: Arc<TenureFlags>, clock: Clock) -> Self {
        Self { window, tenure, clock }
    }

    /// Waits while the session is suspect, at most until its deadline.
    ///
    /// # Errors
    /// [`GateClosed`] once the session is lost or the tenure was told to end abruptly.
    pub async fn pass(&self) -> Result<(), GateClosed> {
        loop {
            let changed = self.window.changed.notified();
            tokio::pin!(changed);
            // A change from here on is not missed.
            changed.as_mut().enable();
            match self.try_pass() {
                Ok(()) => return Ok(()),
                Err(GateRefusal::Closed) => return Err(GateClosed),
                Err(GateRefusal::Held) => {}
            }
            let wait = self.remaining().min(LOOK_AGAIN).max(Duration::from_millis(1));
            // Either way the next thing is to look: a time-out is no more than that, and a window that nobody changes any more
            // is found closed by the clock.
            let _looked = tokio::time::timeout(wait, changed).await;
        }
    }

    /// Whether the gate can be passed at this moment.
    ///
    /// # Errors
    /// [`GateRefusal`].
    pub fn try_pass(&self) -> Result<(), GateRefusal> {
        if self.tenure.closed.load(Ordering::SeqCst) {
            return Err(GateRefusal::Closed);
        }
        let now = nanos((self.clock)());
        if now >= self.window.deadline.load(Ordering::SeqCst) {
            return Err(GateRefusal::Closed);
        }
        // Also a process that was stopped past the moment at which it would have renewed finds itself held here.
        if now >= self.window.fresh_until.load(Ordering::SeqCst) && !crate::mutant!("gate.open-while-suspect") {
            return Err(GateRefusal::Held);
        }
        Ok(())
    }

    /// Whether this tenure leads at this moment: accepted by the store, told to go on, and its deadline ahead. What
    /// `bursar_leader` shows.
    #[must_use]
    pub fn leads_now(&self) -> bool {
        self.tenure.accepted.load(Ordering::SeqCst) && !self.remaining().is_zero()
    }

    /// The session's deadline, moved on with every renewal; the start of the clock once it is lost. It does not say whether
    /// this tenure was told to end.
    #[must_use]
    pub fn deadline(&self) -> watch::Receiver<Moment> {
        self.window.announced.subscribe()
    }

    /// Time until the session is lost, at this moment; zero for a tenure that is over.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        if self.tenure.closed.load(Ordering::SeqCst) {
            return Duration::ZERO;
        }
        let now = nanos((self.clock)());
        Duration::from_nanos(self.window.deadline.load(Ordering::SeqCst).saturating_sub(now))
    }
}

impl TenureFlags {
    pub(super) fn accept(&self) {
        self.accepted.store(true, Ordering::SeqCst);
    }

    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
    }
}

/// A gate with its controls in hand: for tests of what stands behind gates.
#[derive(Clone)]
pub struct GateControl {
    window: Arc<SessionWindow>,
    tenure: Arc<TenureFlags>,
    clock: Clock,
}

impl GateControl {
    /// A gate on this clock, closed until opened.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self { window: Arc::new(SessionWindow::new()), tenure: Arc::new(TenureFlags::default()), clock }
    }

    /// The gate.
    #[must_use]
    pub fn gate(&self) -> Gate {
        Gate::new(Arc::clone(&self.window), Arc::clone(&self.tenure), Arc::clone(&self.clock))
    }

    /// Opens it: held from `fresh_until` on, closed from `deadline` on.
    pub fn open(&self, deadline: Moment, fresh_until: Moment) {
        self.window.open(deadline, fresh_until);
    }

    /// Holds it until the next opening.
    pub fn hold(&self) {
        self.window.hold();
    }

    /// Marks the term as accepted by the store.
    pub fn accept(&self) {
        self.tenure.accept();
    }

    /// Closes it for good.
    pub fn close(&self) {
        self.tenure.close();
        self.window.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Moment {
        Moment::after_boot(Duration::from_millis(ms))
    }

    fn gate_at_a_settable_time() -> (GateControl, Arc<AtomicU64>) {
        let time = Arc::new(AtomicU64::new(1000));
        let read = Arc::clone(&time);
        (GateControl::new(Arc::new(move || at(read.load(Ordering::SeqCst)))), time)
    }

    #[test]
    fn a_process_that_was_stopped_is_told_no_before_any_thread_noticed() {
        let (control, time) = gate_at_a_settable_time();
        let gate = control.gate();
        control.open(at(5000), at(3000));
        assert_eq!(gate.try_pass(), Ok(()));
        assert!(!gate.leads_now(), "not before the store has accepted the term");
        control.accept();
        assert!(gate.leads_now());
        assert_eq!(gate.remaining(), Duration::from_secs(4));
        time.store(3000, Ordering::SeqCst);
        assert_eq!(gate.try_pass(), Err(GateRefusal::Held));
        assert!(gate.leads_now(), "suspect still leads");
        time.store(5000, Ordering::SeqCst);
        assert_eq!(gate.try_pass(), Err(GateRefusal::Closed));
        assert!(!gate.leads_now());
        assert_eq!(gate.remaining(), Duration::ZERO);
    }

    #[test]
    fn a_closed_gate_never_opens_again() {
        let (control, _) = gate_at_a_settable_time();
        control.open(at(5000), at(3000));
        control.accept();
        control.close();
        control.open(at(9000), at(8000));
        assert_eq!(control.gate().try_pass(), Err(GateRefusal::Closed));
        assert!(!control.gate().leads_now());
    }

    #[tokio::test]
    async fn a_held_gate_lets_pass_once_the_session_is_live_again() {
        let (control, _) = gate_at_a_settable_time();
        control.open(at(5000), at(3000));
        control.hold();
        let gate = control.gate();
        let passing = gate.pass();
        tokio::pin!(passing);
        tokio::select! {
            biased;
            result = &mut passing => panic!("passed while held: {result:?}"),
            () = tokio::task::yield_now() => {}
        }
        control.open(at(6000), at(4000));
        assert_eq!(passing.await, Ok(()));
    }

    #[tokio::test]
    async fn a_held_gate_waits_no_longer_than_the_deadline() {
        let (control, time) = gate_at_a_settable_time();
        control.open(at(5000), at(900));
        let gate = control.gate();
        let (result, ()) = tokio::join!(gate.pass(), async { time.store(5001, Ordering::SeqCst) });
        assert_eq!(result, Err(GateClosed));
    }
}

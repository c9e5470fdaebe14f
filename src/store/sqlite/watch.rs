//! What a connection may go on with: asked by SQLite itself every so many steps of a statement, so that a statement can be
//! bounded and a tenure's work interrupted from any thread.
//!
//! The bound is on time spent computing. What lies between two questions counts in full while a statement runs (they come
//! every few microseconds) and hardly at all while the caller does something else, which is bounded elsewhere.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::clock;

/// Steps of SQLite's machine between two questions.
pub(super) const STEPS: i32 = 2_000;

/// The most that counts between two questions.
const GAP: Duration = Duration::from_millis(50);

/// Set once and for ever for a set of connections.
pub(super) type Ended = Arc<AtomicBool>;

/// The watch over one connection.
#[derive(Debug)]
pub(super) struct Watch {
    ended: Ended,
    dropped: AtomicBool,
    armed: AtomicBool,
    /// Nanoseconds.
    bound: AtomicU64,
    spent: AtomicU64,
    last: AtomicU64,
}

impl Watch {
    pub(super) fn new(ended: Ended) -> Self {
        Self {
            ended,
            dropped: AtomicBool::new(false),
            armed: AtomicBool::new(false),
            bound: AtomicU64::new(0),
            spent: AtomicU64::new(0),
            last: AtomicU64::new(0),
        }
    }

    /// From now on: at most `bound`, and an end interrupts.
    pub(super) fn arm(&self, bound: Duration) {
        self.bound.store(nanos(bound), Ordering::Relaxed);
        self.spent.store(0, Ordering::Relaxed);
        self.last.store(now(), Ordering::Relaxed);
        self.armed.store(true, Ordering::SeqCst);
    }

    /// Nothing interrupts from now on: COMMIT is under way.
    pub(super) fn disarm(&self) {
        self.armed.store(false, Ordering::SeqCst);
    }

    /// Whatever runs on the connection is not waited for any more.
    pub(super) fn interrupt(&self) {
        self.dropped.store(true, Ordering::SeqCst);
    }

    /// SQLite's question: whether to go on.
    pub(super) fn goes_on(&self) -> bool {
        if !self.armed.load(Ordering::SeqCst) {
            return true;
        }
        if self.ended.load(Ordering::SeqCst) || self.dropped.load(Ordering::SeqCst) {
            return false;
        }
        let now = now();
        let gap = now.saturating_sub(self.last.swap(now, Ordering::Relaxed)).min(nanos(GAP));
        let spent = self.spent.fetch_add(gap, Ordering::Relaxed).saturating_add(gap);
        spent <= self.bound.load(Ordering::Relaxed)
    }
}

fn now() -> u64 {
    nanos(clock::monotonic().since_boot())
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_between_statements_does_not_count_as_computing() {
        let ended = Ended::default();
        let watch = Watch::new(Arc::clone(&ended));
        assert!(watch.goes_on());
        watch.arm(GAP * 3);
        watch.last.store(0, Ordering::Relaxed);
        assert!(watch.goes_on(), "a long gap counts as {GAP:?}");
        watch.spent.store(nanos(GAP * 4), Ordering::Relaxed);
        assert!(!watch.goes_on());
        watch.arm(GAP);
        assert!(watch.goes_on());
        ended.store(true, Ordering::SeqCst);
        assert!(!watch.goes_on());
        watch.disarm();
        assert!(watch.goes_on(), "nobody cancels a commit");
    }
}

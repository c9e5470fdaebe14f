//! A store in memory, for simulators and tests: the whole port in front of [`MemoryState`], a value.
//!
//! It answers at once and keeps nothing beyond the process. It passes the contract that the real stores pass, so what a
//! simulated replica meets here it would meet there.
//!
//! Invariants:
//! - An operation is atomic: one mutex stands for the gate, from the fence's answer to the commit. Nobody advances in between.
//! - It decides before it writes, so that whatever does not commit has changed nothing (see [`MemoryStore::proving`]).
//! - The time is the injected clock's, read once per operation; ids are counted. Given the same calls, clock and faults, the
//!   same happens again.
//! - Faults are injected where the real ones strike: before the operation, or at its COMMIT.
//!
//! Deliberately absent: sessions, locks, time-outs and timers. A hook that runs inside of a batch is the one thing that takes
//! time; its units are held meanwhile, and an advance ends the batch as it ends a session.

mod approvals;
mod audit;
mod audit_money;
mod audit_payouts;
mod call_acts;
mod calls;
mod fence;
mod holds;
mod imports;
mod instructions;
mod jobs;
mod ledger;
mod pauses;
mod payout_acts;
mod payout_records;
mod payouts;
mod port;
mod preview;
mod receivers;
mod recovery;
mod report;
mod requests;
mod rows;
mod settle;
mod state;
mod stories;
mod tenure;
mod unit_history;
mod units;
mod views;
mod wishes;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chrono::{DateTime, Utc};
use uuid::Uuid;

use self::state::Done;
pub use self::state::MemoryState;
use super::{FenceReject, StoreError};

/// Gives the store's now.
pub type StoreClock = Arc<dyn Fn() -> DateTime<Utc> + Send + Sync>;

/// What goes wrong with one operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The way to the store is lost before anything is done.
    Unreachable,
    /// The database ends the transaction for a reason of its own: nothing is done.
    TryAgain,
    /// COMMIT is sent and not answered. An operation that commits nothing answers as ever.
    Unknown {
        /// Whether it happened.
        committed: bool,
    },
    /// A store that is broken: the fence lets the operation in, whatever it says. For showing that a simulator notices.
    Unfenced,
}

/// Decides, at each operation, by its name, what goes wrong with it.
pub type Faults = Arc<dyn Fn(&'static str) -> Option<Fault> + Send + Sync>;

/// A store in memory, as one replica has it. Clones are the same replica's; [`MemoryStore::seen_by`] is another's.
#[derive(Clone)]
pub struct MemoryStore {
    shared: Arc<Shared>,
    replica: String,
    faults: Arc<Mutex<Option<Faults>>>,
}

struct Shared {
    state: Mutex<MemoryState>,
    /// Units that a batch holds while its hook runs. Locked after the state, never before it.
    held: Mutex<BTreeSet<i64>>,
    clock: StoreClock,
    deployment: Uuid,
    /// Whether each operation is compared with what it says that it did.
    proving: bool,
}

impl MemoryStore {
    /// An empty one, on this clock, of a deployment of that identity.
    #[must_use]
    pub fn new(clock: StoreClock, deployment: Uuid) -> Self {
        Self::open(clock, deployment, false)
    }

    /// The same, and each operation is seen to have changed nothing where it did not commit. Costs a copy for each.
    #[must_use]
    pub fn proving(clock: StoreClock, deployment: Uuid) -> Self {
        Self::open(clock, deployment, true)
    }

    fn open(clock: StoreClock, deployment: Uuid, proving: bool) -> Self {
        let state = Mutex::new(MemoryState::new(deployment));
        let shared = Arc::new(Shared { state, held: Mutex::default(), clock, deployment, proving });
        Self { shared, replica: "memory".to_owned(), faults: Arc::default() }
    }

    /// The same content as another replica has it, with faults of its own.
    #[must_use]
    pub fn seen_by(&self, replica: &str) -> Self {
        Self { shared: Arc::clone(&self.shared), replica: replica.to_owned(), faults: Arc::default() }
    }

    /// What goes wrong on this replica's way to the store from now on; `None`: nothing.
    pub fn set_faults(&self, faults: Option<Faults>) {
        *self.faults.lock().unwrap_or_else(PoisonError::into_inner) = faults;
    }

    /// The content, as it is now.
    #[must_use]
    pub fn snapshot(&self) -> MemoryState {
        self.state().clone()
    }

    /// Puts a content back: a restore. Whoever knows a later position finds that the store forgot.
    pub fn restore(&self, content: MemoryState) {
        *self.state() = content;
    }

    /// Works on the content, past the port: a person's hand.
    pub fn edit<T>(&self, edit: impl FnOnce(&mut MemoryState) -> T) -> T {
        edit(&mut self.state())
    }

    fn state(&self) -> MutexGuard<'_, MemoryState> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn held(&self) -> MutexGuard<'_, BTreeSet<i64>> {
        self.shared.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The deployment, as every replica knows it.
    fn deployment(&self) -> Uuid {
        self.shared.deployment
    }

    /// The clock's time, in the microseconds that the other stores keep.
    fn now(&self) -> DateTime<Utc> {
        let now = (self.shared.clock)();
        DateTime::from_timestamp_micros(now.timestamp_micros()).unwrap_or(now)
    }

    fn fault(&self, operation: &'static str) -> Option<Fault> {
        let faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner).clone();
        faults.and_then(|faults| faults(operation))
    }

    /// One transaction.
    fn operate<T>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&mut MemoryState, DateTime<Utc>) -> Result<Done<T>, StoreError>,
    ) -> Result<T, StoreError> {
        self.operate_told(operation, |state, now, _unfenced| work(state, now))
    }

    /// One transaction that is told whether the fence is broken.
    fn operate_told<T>(
        &self,
        operation: &'static str,
        work: impl FnOnce(&mut MemoryState, DateTime<Utc>, bool) -> Result<Done<T>, StoreError>,
    ) -> Result<T, StoreError> {
        let fault = self.fault(operation);
        let detail = || "injected".to_owned();
        match fault {
            Some(Fault::Unreachable) => return Err(StoreError::Unreachable { operation, detail: detail() }),
            Some(Fault::TryAgain) => {
                return Err(StoreError::TryAgain { operation, code: "40001".to_owned(), detail: detail() });
            }
            Some(Fault::Unknown { .. } | Fault::Unfenced) | None => {}
        }
        let mut state = self.state();
        // Under the gate: what waits for it acts on the time at which it got in.
        let now = self.now();
        let before = (self.shared.proving || fault == Some(Fault::Unknown { committed: false })).then(|| state.clone());
        let done = match work(&mut state, now, fault == Some(Fault::Unfenced)) {
            Ok(Done::Commit(done)) => {
                state.committed();
                done
            }
            kept => {
                if let Some(before) = before.filter(|_| self.shared.proving) {
                    assert!(*state == before, "{operation}: nothing was committed, and the store changed");
                }
                return kept.map(Done::into_inner);
            }
        };
        match (fault, before) {
            (Some(Fault::Unknown { committed: false }), Some(before)) => *state = before,
            (Some(Fault::Unknown { committed: true }), _) => {}
            (_, _) => return Ok(done),
        }
        Err(StoreError::Unknown { operation, detail: detail() })
    }

    /// Reads; nothing is committed, so no COMMIT can be unknown.
    fn look<T>(
        &self,
        operation: &'static str,
        look: impl FnOnce(&MemoryState, DateTime<Utc>) -> T,
    ) -> Result<T, StoreError> {
        self.operate(operation, |state, now| Ok(Done::RollBack(look(state, now))))
    }

    /// Writes a refusal down, after the fact and unfenced. Best effort: on a way that is lost it is not.
    fn note(&self, reject: FenceReject) {
        let noted = self.operate("fence_reject", |state, now| {
            state.rejects.push(FenceReject { at: now, ..reject });
            Ok(Done::Commit(()))
        });
        // Whoever was refused is told in any case.
        drop(noted);
    }
}

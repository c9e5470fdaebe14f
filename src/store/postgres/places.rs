//! Places for the sessions of tenures: one limit for the process, whatever the number of its elections.
//!
//! Each tenure has places of its own; beyond them every session that is open, lent or idle, has one of the common places.
//! Who finds none takes over the place of an idle session of another tenure, whose end is seen first; where none is idle it
//! waits until one is.
//!
//! Invariants:
//! - No more sessions of tenures are open than there are places; a session gives its place back when it is closed.
//! - A place of one's own is never taken by another tenure: each can always have that one session.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

use super::end::end_backends;
use super::sessions::{Session, Sessions};
use super::within::ABANDON;

/// How the sessions of a process's tenures are bounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PgShares {
    /// Sessions that each tenure may always have; at least 1.
    pub own: u32,
    /// Sessions beyond those, of all tenures together.
    pub common: u32,
}

/// The common places of a process, and who has taken some.
#[derive(Debug)]
pub(super) struct Places {
    own: u32,
    common: Arc<Semaphore>,
    tenures: Mutex<Vec<Weak<Sessions>>>,
    /// A session of some tenure has become idle.
    idle: Notify,
}

/// One tenure's share.
#[derive(Debug)]
pub(super) struct Share {
    places: Arc<Places>,
    own: Arc<Semaphore>,
}

/// What a session stands on while it is open.
#[derive(Debug)]
pub(super) struct Place {
    is_common: bool,
    _permit: OwnedSemaphorePermit,
}

/// What a tenure gets that has no idle session.
#[derive(Debug)]
pub(super) enum Taken {
    /// A place to open a session on.
    Place(Place),
    /// One of its own sessions became idle.
    Idle(Session),
}

fn size(places: u32) -> usize {
    usize::try_from(places).unwrap_or(usize::MAX).min(Semaphore::MAX_PERMITS)
}

impl Place {
    /// Whether another tenure may take it over.
    pub(super) const fn is_common(&self) -> bool {
        self.is_common
    }

    const fn own(permit: OwnedSemaphorePermit) -> Self {
        Self { is_common: false, _permit: permit }
    }

    const fn common(permit: OwnedSemaphorePermit) -> Self {
        Self { is_common: true, _permit: permit }
    }
}

impl Places {
    pub(super) fn new(shares: PgShares) -> Arc<Self> {
        Arc::new(Self {
            own: shares.own.max(1),
            common: Arc::new(Semaphore::new(size(shares.common))),
            tenures: Mutex::default(),
            idle: Notify::new(),
        })
    }

    /// The share of a tenure that begins.
    pub(super) fn share(self: &Arc<Self>) -> Share {
        Share { places: Arc::clone(self), own: Arc::new(Semaphore::new(size(self.own))) }
    }

    /// Puts a tenure's sessions among those whose idle ones may be ended for others.
    pub(super) fn join(&self, sessions: &Arc<Sessions>) {
        // Nothing panics under it, and a list is whole at any time.
        let mut tenures = self.tenures.lock().unwrap_or_else(PoisonError::into_inner);
        tenures.retain(|tenure| tenure.strong_count() > 0);
        tenures.push(Arc::downgrade(sessions));
    }

    /// An idle session on a common place, of whichever tenure.
    fn idle_on_a_common_place(&self) -> Option<(Session, Arc<Sessions>)> {
        let tenures = self.tenures.lock().unwrap_or_else(PoisonError::into_inner).clone();
        tenures
            .iter()
            .filter_map(Weak::upgrade)
            .find_map(|tenure| Some((tenure.take_idle_on_a_common_place()?, tenure)))
    }
}

impl Share {
    /// Tells who waits for a place that a session has become idle.
    pub(super) fn became_idle(&self) {
        self.places.idle.notify_waiters();
    }

    /// A place, or an idle session of `sessions` itself, whichever is there first.
    pub(super) async fn take(&self, sessions: &Sessions, control: &Arc<Sessions>, operation: &'static str) -> Taken {
        loop {
            let became_idle = self.places.idle.notified();
            tokio::pin!(became_idle);
            became_idle.as_mut().enable();
            if let Some(session) = sessions.pop_idle() {
                return Taken::Idle(session);
            }
            if let Ok(permit) = Arc::clone(&self.own).try_acquire_owned() {
                return Taken::Place(Place::own(permit));
            }
            if let Ok(permit) = Arc::clone(&self.places.common).try_acquire_owned() {
                return Taken::Place(Place::common(permit));
            }
            if let Some((session, owner)) = self.places.idle_on_a_common_place() {
                if let Some(place) = ended(session, owner, Arc::clone(control), operation).await {
                    return Taken::Place(place);
                }
                continue;
            }
            tokio::select! {
                // Neither is ever closed; were they, the next look would find it.
                Ok(permit) = Arc::clone(&self.own).acquire_owned() => return Taken::Place(Place::own(permit)),
                Ok(permit) = Arc::clone(&self.places.common).acquire_owned() => return Taken::Place(Place::common(permit)),
                () = became_idle => {}
            }
        }
    }
}

/// Ends an idle session, sees it gone, and answers its place. Named in full, for this goes round through the control pool.
fn ended(
    session: Session,
    owner: Arc<Sessions>,
    control: Arc<Sessions>,
    operation: &'static str,
) -> BoxFuture<'static, Option<Place>> {
    async move {
        let (backend, place) = session.disconnect();
        // Idle, so nothing of it can be under way; where its end cannot be seen, it comes with its closed socket.
        if end_backends(&control, operation, &[backend], ABANDON).await.confirmed {
            owner.forget(backend);
        }
        place
    }
    .boxed()
}

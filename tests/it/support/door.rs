//! A gate in the test's hand: as leadership gives it to a tenure, and as a tenure gives it to the store.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bursar::clock::boottime;
use bursar::domain::Moment;
use bursar::store::Admission;
use bursar::tenure::{Gate, GateClosed};
use tokio::sync::watch;

/// What a gate may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    /// Whoever comes may pass.
    Open,
    /// Whoever comes waits.
    Held,
    /// Nobody passes any more.
    Closed,
}

/// What stands behind a door: a gate, and an admission.
#[derive(Debug, Clone)]
pub struct BehindDoor(watch::Receiver<Door>);

/// A door that stands open, and what stands behind it.
pub fn door() -> (watch::Sender<Door>, BehindDoor) {
    let (door, seen) = watch::channel(Door::Open);
    (door, BehindDoor(seen))
}

/// An admission that is given at any time.
pub fn always() -> Arc<dyn Admission> {
    // A door whose holder is gone stays as it is.
    Arc::new(door().1)
}

impl BehindDoor {
    /// Behind a door that others stand behind too.
    pub fn of(door: &watch::Sender<Door>) -> Self {
        Self(door.subscribe())
    }

    async fn opens(&self) -> bool {
        let mut door = self.0.clone();
        door.wait_for(|door| *door != Door::Held).await.is_ok_and(|door| *door == Door::Open)
    }
}

#[async_trait]
impl Gate for BehindDoor {
    async fn pass(&self) -> Result<(), GateClosed> {
        if self.opens().await { Ok(()) } else { Err(GateClosed) }
    }

    fn deadline(&self) -> watch::Receiver<Moment> {
        // Nobody renews it, and it is far: a channel whose holder is gone stays as it is.
        watch::channel(boottime() + Duration::from_hours(1)).1
    }
}

#[async_trait]
impl Admission for BehindDoor {
    async fn admitted(&self) -> bool {
        self.opens().await
    }
}

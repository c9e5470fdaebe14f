//! The gate stands right before BEGIN: what waited for a connection begins nothing while the session is suspect, and what
//! has left is recorded meanwhile.

use std::sync::Arc;
use std::time::Duration;

use bursar::store::{BatchError, BatchHook, Effect, SettleOutcome, Store, StoreError, TenureLimits, UnitPick};
use futures_util::FutureExt;
use tokio::sync::Notify;

use super::ground::{accepted, claim, limits, lineage, migrated, mine, open, planned};
use crate::support::{Door, door};

const ALL: UnitPick = UnitPick::Fresh { after: 0, limit: 100 };

/// Stays inside of the batch's transaction until it is let go.
#[derive(Default)]
struct Inside {
    entered: Notify,
    go: Notify,
}

#[async_trait::async_trait]
impl BatchHook for Inside {
    async fn run(&self, _keys: &[String]) -> Result<(), BatchError> {
        self.entered.notify_one();
        self.go.notified().await;
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waited_for_a_connection_begins_only_once_the_session_is_live() {
    let database = migrated().await;
    let store = open(&database.url());
    let claim = claim(1);
    accepted(&store, &claim).await;
    let (door, behind) = door();
    let one = TenureLimits { connections: 1, acquire_timeout: Duration::from_secs(30), ..limits() };
    let tenure = store.tenure(&claim, one, lineage(&store).await, Arc::new(behind)).await.expect("a tenure");
    let run = planned(tenure.as_ref(), "probe", &["a", "b"]).await;
    let inside = Arc::new(Inside::default());
    let effect = Effect::Mark(Arc::clone(&inside) as Arc<dyn BatchHook>);
    let mut settling = Box::pin(tenure.settle(&run, ALL, &effect));
    tokio::select! {
        settled = &mut settling => panic!("the batch waits inside: {settled:?}"),
        () = inside.entered.notified() => {}
    }
    let mut waiting = Box::pin(tenure.pulse());
    assert!((&mut waiting).now_or_never().is_none(), "every connection is in use");
    door.send_replace(Door::Held);
    inside.go.notify_one();
    assert!(matches!(mine(settling.await), SettleOutcome::Settled(_)), "what has begun commits");
    for _ in 0..5 {
        tokio::select! {
            began = &mut waiting => panic!("it began while the session was suspect: {began:?}"),
            recorded = tenure.lineage() => drop(mine(recorded)),
        }
    }
    door.send_replace(Door::Open);
    mine(waiting.await);

    door.send_replace(Door::Held);
    let mut waiting = Box::pin(tenure.pulse());
    assert!((&mut waiting).now_or_never().is_none());
    door.send_replace(Door::Closed);
    assert_eq!(waiting.await, Err(StoreError::Ended { operation: "pulse" }), "nothing begins any more");
    mine(tenure.release().await);
}

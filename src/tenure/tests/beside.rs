//! The tasks of a tenure beside each other: none waits for what another waits for, and none asks more often than it must.

use std::collections::BTreeSet;

use super::*;
use crate::domain::run::RunKind;
use crate::store::RequestKind;
use crate::tenure::bringup::tests::definition;
use crate::tenure::supervisor::begin_all;
use crate::tenure::timers::Timers;
use crate::tenure::{pulse, work};

/// The store's time in these tests, which stands still.
fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000, 0).expect("in range")
}

#[tokio::test]
async fn a_tick_does_not_wait_for_a_request_that_takes_its_time_and_the_end_of_the_tenure_ends_it() {
    let definition = definition("minutely", "here", "* * * * *");
    let fingerprint = definition.fingerprint();
    let rig = rig_of(ScheduleInForce { jobs: vec![definition.clone()], fingerprint: String::new() });
    let evaluated_until = now() - Duration::from_mins(1);
    let row = JobRow { id: 1, definition, fingerprint, evaluated_until, paused: None, pauses: Vec::new() };
    rig.store.jobs.lock().expect("no panic holds it").push(row);
    let kind = RequestKind::RetryUnits { run: 1, keys: BTreeSet::new() };
    let slow = PendingRequest { id: Uuid::nil(), kind, at: now() };
    rig.store.waiting.lock().expect("no panic holds it").push(slow);

    let tenure = Tenure::new(Arc::clone(&rig.scope), Arc::clone(&rig.store) as Arc<dyn TenureStore>);
    let (timers, fired) = Timers::start().expect("a thread");
    let tasks = begin_all(&tenure, timers, fired);
    for (what, seen) in [("it is begun", &rig.store.executing), ("and a tick recorded", &rig.store.recorded)] {
        tokio::time::timeout(SOON, seen.notified()).await.expect(what);
    }

    rig.scope.stopping.cancel();
    rig.scope.ended.cancel();
    rig.scope.tracker.close();
    tokio::time::timeout(SOON, rig.scope.tracker.wait()).await.expect("every task of it ends");
    drop(tasks);
    assert_eq!(rig.heard.all(), [""; 0]);
}

#[tokio::test]
async fn the_stores_clock_is_learnt_from_the_attempt_that_was_answered() {
    let rig = rig();
    let tenure = Tenure::new(Arc::clone(&rig.scope), Arc::clone(&rig.store) as Arc<dyn TenureStore>);
    let away = StoreError::Unreachable { operation: "pulse", detail: "set to fail".to_owned() };
    rig.next_pulse(Err(away));
    let heard = pulse::hear(&tenure).await.expect("the second attempt is answered");
    let failed_at = rig.store.failed_at.lock().expect("no panic holds it").expect("the first failed");
    assert!(heard.sent >= failed_at, "the time before it says nothing of the store's clock");
    assert!(!heard.stepped_back);
    assert_eq!(tenure.clock.at(heard.sent), Some(now()));
    rig.next_pulse(Ok(Entered::Mine(Pulse {
        now: now() - Duration::from_secs(6),
        requests: 0,
        open_runs: 0,
        jobs: 0,
    })));
    assert!(pulse::hear(&tenure).await.expect("answered").stepped_back);
}

#[tokio::test]
async fn the_open_runs_are_read_once_for_all_that_end_together() {
    const RUNS: i64 = 20;
    let rig = rig();
    let tenure = Tenure::new(Arc::clone(&rig.scope), Arc::clone(&rig.store) as Arc<dyn TenureStore>);
    let manual = |id: i64| OpenRun {
        request_id: Some(Uuid::from_u128(id.unsigned_abs().into())),
        ..work::tests::open(id, RunKind::Manual, false)
    };
    rig.store.open.lock().expect("no panic holds it").extend((1..=RUNS).map(manual));
    let working = tenure.spawn(work::work(tenure.clone()));
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    let (begun, reads) = (&rig.store.begun, &rig.store.reads);
    assert_eq!(i64::from(*begun.lock().expect("no panic holds it")), RUNS, "each was begun, and ended at once");
    assert_eq!(*reads.lock().expect("no panic holds it"), 2, "once to begin them, once after their end");
    rig.scope.stopping.cancel();
    tokio::time::timeout(SOON, working).await.expect("it ends").expect("no panic");
}

//! A planned hand-over while a call is under way: one that has not left ends with it, one that has may still be answered.

use futures_util::FutureExt as _;

use super::*;

/// Is never answered; asks for leave before that where it is told to.
struct Slow {
    leaves: bool,
    asked: tokio::sync::Notify,
}

#[async_trait]
impl OutsideHandler for Slow {
    fn is_idempotent(&self) -> bool {
        true
    }
    async fn call(&self, _: &Call, _: Moment, departure: &Departure) -> CallOutcome {
        if self.leaves {
            departure.depart().await.expect("the gate is open");
        }
        self.asked.notify_one();
        std::future::pending().await
    }
}

fn call() -> Call {
    Call {
        instruction: 1,
        unit: 1,
        key: "one".to_owned(),
        idempotency_key: "bone".to_owned(),
        body: Vec::new(),
        attempt: 1,
        charged: 0,
        in_doubt: false,
        age: Duration::ZERO,
    }
}

#[tokio::test]
async fn a_call_that_has_not_left_ends_with_the_tenure_and_one_that_has_when_the_drain_is_over() {
    for leaves in [false, true] {
        let rig = rig();
        let tenure = Tenure::new(Arc::clone(&rig.scope), Arc::clone(&rig.store) as Arc<dyn TenureStore>);
        let takes = [Ok(Entered::Mine(vec![call()])), Ok(Entered::Mine(Vec::new()))];
        rig.store.takes.lock().expect("no panic holds it").extend(takes);
        rig.store.records.lock().expect("no panic holds it").push_back(Ok(Entered::Mine(1)));
        let slow = Arc::new(Slow { leaves, asked: tokio::sync::Notify::new() });
        let handler = Arc::clone(&slow) as Arc<dyn OutsideHandler>;
        let run = super::super::work::tests::open(1, crate::domain::run::RunKind::Tick, false);
        let mut door = outside::Door::default();
        let drained = outside::drain(&tenure, &run, &handler, &mut door);
        tokio::pin!(drained);
        tokio::select! {
            _ = &mut drained => panic!("the call is under way"),
            () = slow.asked.notified() => {}
        }
        rig.scope.stopping.cancel();
        if leaves {
            for _ in 0..50 {
                tokio::task::yield_now().await;
                assert!(drained.as_mut().now_or_never().is_none(), "its answer may still come");
            }
            rig.scope.answers.cancel();
        }
        tokio::time::timeout(SOON, drained).await.expect("it ends").expect("what is known is recorded");
        assert!(rig.store.records.lock().expect("no panic holds it").is_empty(), "it is put back, or in doubt");
    }
}

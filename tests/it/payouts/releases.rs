//! The release of a merchant beside others who hold its payouts, step by step on a real server: whoever comes first, nothing
//! stays held for a hold that is gone.
//!
//! A foreign session keeps a table from being written to, and so stops one of the two between its statements.

use bursar::domain::job::LedgerDefinition;
use bursar::store::ReleaseOutcome;
use sqlx::PgConnection;

use super::super::desk::actor;
use super::super::fence::ground::waiting_for_locks;
use super::*;

/// The payouts of m0 and on, tried and put back while m0 was put on hold: all pending.
async fn pending_on_hold(desk: &Desk, count: usize) -> (Job, Vec<Payout>) {
    let (job, _) = settled(desk, merchants(count)).await;
    let payouts = take(desk, terms(&job, true), 9).await.payouts;
    assert_eq!(payouts.len(), count);
    desk.store.hold_merchant("m0", "police", &actor()).await.expect("the store answers");
    for payout in &payouts {
        record(desk, payout, back()).await;
    }
    (job, payouts)
}

/// A payout of m0 that is held for its amount, with m0 on hold.
async fn over_limit_on_hold(desk: &Desk) -> (Job, PayoutView) {
    let limited = LedgerDefinition { maximum_payout: [(currency("EUR"), 999)].into(), ..everything() };
    let job = desk.job("daily", limited).await;
    desk.import("adyen", merchants(1)).await;
    desk.settled(&job).await;
    desk.store.hold_merchant("m0", "police", &actor()).await.expect("the store answers");
    let filter = PayoutFilter { limit: 9, ..PayoutFilter::default() };
    (job, desk.store.payouts(&filter).await.expect("the store answers").remove(0))
}

/// Keeps everybody from writing to a table until it commits.
async fn kept(desk: &Desk, table: &'static str) -> PgConnection {
    let mut foreign = desk.database.connect().await;
    let lock = sqlx::AssertSqlSafe(format!("begin; lock table bursar.{table} in share mode"));
    sqlx::raw_sql(lock).execute(&mut foreign).await.expect("nobody writes to it");
    foreign
}

/// Runs the first until it is kept, then the other until it waits too, then both to their ends.
async fn one_after_the_other<A, B>(
    desk: &Desk,
    mut foreign: PgConnection,
    first: impl Future<Output = A>,
    other: impl Future<Output = B>,
) -> (A, B) {
    let after = async {
        waiting_for_locks(&desk.database, 1).await;
        let (answer, ()) = tokio::join!(other, async {
            waiting_for_locks(&desk.database, 2).await;
            sqlx::raw_sql("commit").execute(&mut foreign).await.expect("it is ours");
        });
        answer
    };
    tokio::join!(first, after)
}

async fn freed(desk: &Desk) -> Option<u64> {
    desk.store.release_merchant("m0", "cleared", &actor()).await.expect("the store answers")
}

async fn released(desk: &Desk, payout: &PayoutView) -> ReleaseOutcome {
    let keys = [payout.key.clone()];
    desk.store.release_payouts(payout.run, &keys, "seen", &actor()).await.expect("the store answers")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_take_that_saw_a_hold_which_is_released_meanwhile_holds_nothing_for_it() {
    let desk = Desk::open().await;
    let (job, payouts) = pending_on_hold(&desk, 1).await;
    // The release has ended the hold, and cannot write down that it did.
    let foreign = kept(&desk, "operator_act").await;
    let (freed, taken) = one_after_the_other(&desk, foreign, freed(&desk), take(&desk, terms(&job, true), 9)).await;
    assert_eq!(freed, Some(0), "nothing was held yet");
    assert_eq!((taken.payouts.len(), taken.held), (0, 0), "nor is it now");
    assert_eq!(state(&desk, &payouts[0]).await, (InstructionState::Pending, None, false));
    assert_eq!(take(&desk, terms(&job, true), 9).await.payouts.len(), 1);
    desk.audit_is_clean().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_release_waits_for_a_take_that_holds_a_payout_and_frees_that_one_too() {
    let desk = Desk::open().await;
    let (job, payouts) = pending_on_hold(&desk, 2).await;
    // The take has held the one, and cannot write down that the other leaves.
    let foreign = kept(&desk, "instruction_try").await;
    let (taken, freed) = one_after_the_other(&desk, foreign, take(&desk, terms(&job, true), 9), freed(&desk)).await;
    assert_eq!((taken.payouts.len(), taken.held), (1, 1));
    assert_eq!(freed, Some(1));
    assert_eq!(state(&desk, &payouts[0]).await, (InstructionState::Pending, None, false));
    desk.audit_is_clean().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_released_by_name_beside_the_release_of_its_merchant_is_not_held_for_it() {
    for merchant_first in [true, false] {
        let desk = Desk::open().await;
        let (job, payout) = over_limit_on_hold(&desk).await;
        // Whoever is first has done it, and cannot write it down.
        let foreign = kept(&desk, "operator_act").await;
        let (outcome, freed) = if merchant_first {
            let (freed, outcome) = one_after_the_other(&desk, foreign, freed(&desk), released(&desk, &payout)).await;
            (outcome, freed)
        } else {
            one_after_the_other(&desk, foreign, released(&desk, &payout), freed(&desk)).await
        };
        assert_eq!(outcome, ReleaseOutcome::Released { payouts: 1 });
        assert_eq!(freed, Some(u64::from(!merchant_first)));
        let view = view(&desk, &payout.key).await;
        assert_eq!((view.state, view.reason.as_deref()), (InstructionState::Pending, None), "{merchant_first}");
        assert_eq!(take(&desk, terms(&job, true), 9).await.payouts.len(), 1);
        desk.audit_is_clean().await;
    }
}

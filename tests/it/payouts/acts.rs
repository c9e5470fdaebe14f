//! What operators say of payouts: resolve, release, hold a merchant. Each is an act on record.

use bursar::domain::job::{LedgerDefinition, Release};
use bursar::store::{HoldReport, ReleaseOutcome, Resolution, ResolveOutcome};

use super::super::desk::{actor, capture, election, mine};
use super::super::fence::ground::waiting_for_locks;
use super::*;

on_every_store!(
    a_persons_word_ends_what_is_held_with_the_postings_that_follow,
    instructions_that_wait_for_a_release_leave_after_it,
    what_is_held_for_its_amount_leaves_once_it_is_released_by_name,
    a_merchant_on_hold_gets_no_unit_and_nothing_pending_of_it_is_sent,
);

async fn resolve<D: Ground>(desk: &Desk<D>, key: &str, word: Resolution) -> ResolveOutcome {
    desk.store.resolve_payout(key, &word, "the bank's letter", &actor()).await.expect("the store answers")
}

fn not_paid(word: Option<&str>) -> Resolution {
    Resolution::NotPaid { bank_confirmed: word.map(str::to_owned) }
}

fn now(outcome: &ResolveOutcome) -> Option<InstructionState> {
    match outcome {
        ResolveOutcome::Resolved { now, .. } => Some(*now),
        ResolveOutcome::NotFound | ResolveOutcome::Refused { .. } | ResolveOutcome::Waits { .. } => None,
    }
}

async fn a_persons_word_ends_what_is_held_with_the_postings_that_follow<D: Ground>() {
    let desk = Desk::<D>::new().await;
    let (job, _) = settled(&desk, merchants(4)).await;
    let payouts = take(&desk, terms(&job, false), 9).await.payouts;
    let key = |n: usize| payouts[n].idempotency_key.as_str();
    let refused = resolve(&desk, key(0), Resolution::Paid("R".to_owned())).await;
    assert_eq!(now(&refused), None, "it is on the wire: {refused:?}");
    for payout in &payouts[..3] {
        record(&desk, payout, unknown(None)).await;
    }
    record(&desk, &payouts[3], paid()).await;
    // Also while the election is halted.
    desk.store.halt(&election(), "month end", &actor()).await.expect("it is halted");
    assert_eq!(now(&resolve(&desk, key(0), Resolution::Paid("R".to_owned())).await), Some(InstructionState::Paid));
    assert_eq!(now(&resolve(&desk, key(1), not_paid(None)).await), None, "its key is still valid");
    assert_eq!(now(&resolve(&desk, key(1), not_paid(Some("W"))).await), Some(InstructionState::Rejected));
    desk.database
        .broken_by(&format!(
            "update bursar.instruction set key_valid_until = {} where id = {}",
            D::words("now()", "(select now from clock)"),
            payouts[2].instruction
        ))
        .await;
    assert_eq!(now(&resolve(&desk, key(2), not_paid(None)).await), Some(InstructionState::Rejected));
    assert_eq!(
        now(&resolve(&desk, key(3), Resolution::Returned("B".to_owned())).await),
        Some(InstructionState::Returned)
    );
    assert_eq!(now(&resolve(&desk, key(3), Resolution::Returned("B".to_owned())).await), None, "once");
    assert_eq!(resolve(&desk, "bnone", not_paid(None)).await, ResolveOutcome::NotFound);
    desk.audit_is_clean().await;
    let carried: i64 = desk
        .database
        .value("select sum(amount)::bigint from bursar.entry where kind = 'carry' and unit_id is null")
        .await;
    assert_eq!(carried, 3000, "two that were not paid and one that came back");
    let acts = desk.store.history(9).await.expect("the store answers").acts;
    assert_eq!(acts.iter().filter(|act| act.action == "payouts resolve").count(), 4);
}

async fn instructions_that_wait_for_a_release_leave_after_it<D: Ground>() {
    let desk = Desk::<D>::new().await;
    let manual = LedgerDefinition { release: Release::Manual, ..everything() };
    let job = desk.job("daily", manual).await;
    desk.import("adyen", merchants(3)).await;
    let run = desk.settled(&job).await;
    assert_eq!(mine(desk.tenure.payout_jobs().await), []);
    assert_eq!(take(&desk, terms(&job, true), 9).await.payouts, []);
    let listed = desk.store.payouts(&PayoutFilter { run: Some(run.id), limit: 9, ..PayoutFilter::default() }).await;
    let listed = listed.expect("the store answers");
    let release =
        async |keys: &[String]| desk.store.release_payouts(run.id, keys, "seen", &actor()).await.expect("it answers");
    assert_eq!(release(&[listed[0].key.clone()]).await, ReleaseOutcome::Released { payouts: 1 });
    assert_eq!(take(&desk, terms(&job, true), 9).await.payouts.len(), 1);
    assert_eq!(release(&[]).await, ReleaseOutcome::Released { payouts: 2 });
    assert_eq!(take(&desk, terms(&job, true), 9).await.payouts.len(), 2);
    let none = desk.store.release_payouts(run.id + 1000, &[], "seen", &actor()).await;
    assert_eq!(none.expect("it answers"), ReleaseOutcome::NotFound);
}

async fn what_is_held_for_its_amount_leaves_once_it_is_released_by_name<D: Ground>() {
    let desk = Desk::<D>::new().await;
    let low = LedgerDefinition { maximum_payout: [(currency("EUR"), 500)].into(), ..everything() };
    let job = desk.job("daily", low).await;
    desk.import("adyen", merchants(1)).await;
    let run = desk.settled(&job).await;
    let listed = desk.store.payouts(&PayoutFilter { run: Some(run.id), limit: 9, ..PayoutFilter::default() }).await;
    let key = listed.expect("the store answers").remove(0).key;
    let capped = || PayoutTerms { maximum: [(currency("EUR"), 500)].into(), ..terms(&job, true) };
    let release =
        async |keys: &[String]| desk.store.release_payouts(run.id, keys, "seen", &actor()).await.expect("it answers");
    assert_eq!(release(&[]).await, ReleaseOutcome::Released { payouts: 0 });
    assert_eq!(release(&[key]).await, ReleaseOutcome::Released { payouts: 1 });
    assert_eq!(take(&desk, capped(), 9).await.payouts.len(), 1, "it is not held a second time");
    desk.audit_is_clean().await;
}

async fn a_merchant_on_hold_gets_no_unit_and_nothing_pending_of_it_is_sent<D: Ground>() {
    let desk = Desk::<D>::new().await;
    let (job, _) = settled(&desk, merchants(3)).await;
    let sent = take(&desk, terms(&job, true), 1).await.payouts.remove(0);
    for (merchant, held, on_the_wire) in [("m0", 0, 1), ("m1", 1, 0)] {
        let report = desk.store.hold_merchant(merchant, "police", &actor()).await.expect("it answers");
        assert_eq!(report, HoldReport { already: false, held, on_the_wire });
    }
    assert_eq!(take(&desk, terms(&job, true), 9).await.payouts.len(), 1, "the third merchant's");
    // What comes back of the first stays here.
    record(&desk, &sent, back()).await;
    assert_eq!(take(&desk, terms(&job, true), 9).await.held, 1);
    assert_eq!(state(&desk, &sent).await, (InstructionState::Held, Some("merchant".to_owned()), false));
    desk.import("stripe", vec![capture("late", "m1", "EUR", "5.00")]).await;
    let run = desk.planned(&job).await;
    assert_eq!(desk.units(&run).await, []);
    assert_eq!(desk.store.merchant_holds().await.expect("it answers").len(), 2);
    let freed = async |merchant| desk.store.release_merchant(merchant, "cleared", &actor()).await.expect("it answers");
    assert_eq!((freed("m0").await, freed("m1").await, freed("m1").await), (Some(1), Some(1), None));
    assert_eq!(take(&desk, terms(&job, true), 9).await.payouts.len(), 2);
    desk.audit_is_clean().await;
}

#[tokio::test]
async fn what_is_put_on_the_wire_while_its_merchant_is_held_is_counted_as_on_the_wire() {
    let desk = Desk::open().await;
    settled(&desk, merchants(1)).await;
    let mut taking = desk.database.connect().await;
    let take = "begin; update bursar.instruction set state = 'sending', attempts = 1, sending_term = 1";
    sqlx::raw_sql(take).execute(&mut taking).await.expect("the row is free");
    let by = actor();
    let (report, ()) = tokio::join!(desk.store.hold_merchant("m0", "police", &by), async {
        waiting_for_locks(&desk.database, 1).await;
        sqlx::raw_sql("commit").execute(&mut taking).await.expect("it commits");
    });
    assert_eq!(report.expect("it answers"), HoldReport { already: false, held: 0, on_the_wire: 1 });
}

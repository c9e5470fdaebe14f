//! Control over money: amounts above the maximum, releases by hand, merchants on hold.

use bursar::domain::instruction::InstructionState;
use bursar::domain::job::{HandlerDefinition, LedgerDefinition, Release};
use bursar::domain::unit::UnitState;
use bursar::store::{HoldReport, PayoutFilter, PayoutTake, PayoutTerms, PayoutsTaken, ReleaseOutcome, SettleOutcome};

use super::super::bench::{
    Bench, SOON, actor, capture, currency, definition, effect, election, everything, fresh, left_in_store, mine,
};
use super::{Till, WAITED, back, held, merchants, order, unknown};
use crate::support::eventually;

/// Terms under which 10.00 EUR is too much.
fn low(till: &Till<'_>) -> PayoutTerms {
    PayoutTerms { maximum: [(currency("EUR"), 999)].into(), ..till.terms(true) }
}

async fn released(till: &Till<'_>, keys: &[&str]) -> u64 {
    let keys: Vec<String> = keys.iter().map(|&key| key.to_owned()).collect();
    let released = till.bench.store.release_payouts(till.run.id, &keys, "seen", &actor()).await;
    let ReleaseOutcome::Released { payouts } = released.expect("an answer") else { panic!("there is the run") };
    let act = till.bench.store.history(1).await.expect("an answer").acts.remove(0);
    assert_eq!((act.action.as_str(), act.target, act.term), ("payouts release", till.run.id.to_string(), Some(1)));
    payouts
}

async fn hold(bench: &Bench, merchant: &str, reason: &str) -> HoldReport {
    bench.store.hold_merchant(merchant, reason, &actor()).await.expect("an answer")
}

async fn freed(bench: &Bench, merchant: &str) -> Option<u64> {
    bench.store.release_merchant(merchant, "cleared", &actor()).await.expect("an answer")
}

pub async fn payouts_that_wait_for_a_release_leave_after_it(bench: &Bench) {
    let manual = LedgerDefinition { release: Release::Manual, ..everything() };
    let till = Till::of(bench, manual, merchants(3)).await;
    let before = till.picture().await;
    assert_eq!(mine(till.leads.payout_jobs().await), []);
    assert_eq!(till.take(till.terms(true)).await, PayoutsTaken::default());
    let none = bench.store.release_payouts(till.run.id + 1000, &[], "seen", &actor()).await;
    assert_eq!(none, Ok(ReleaseOutcome::NotFound));
    assert_eq!(till.picture().await, before, "nothing changed");
    let listed = till.payouts().await;
    assert!(listed.iter().all(|payout| payout.release == "waiting" && payout.state == InstructionState::Pending));
    let before = till.picture().await;
    let keys = [listed[1].key.clone(), "bnone".to_owned(), "bnotone".to_owned()];
    let unmatched = bench.store.release_payouts(till.run.id, &keys, "seen", &actor()).await;
    assert_eq!(unmatched, Ok(ReleaseOutcome::Unmatched { keys: keys[1..].to_vec() }));
    assert_eq!(till.picture().await, before, "nothing changed");
    assert_eq!(released(&till, &[&listed[1].key]).await, 1);
    let first = till.take_one(till.terms(true)).await;
    assert_eq!(first.idempotency_key, listed[1].key);
    assert_eq!(till.view(&listed[1].key).await.release, "released");
    let again = bench.store.release_payouts(till.run.id, &keys[..1], "seen", &actor()).await;
    assert_eq!(again, Ok(ReleaseOutcome::Unmatched { keys: keys[..1].to_vec() }), "it is on the wire");
    assert_eq!(released(&till, &[]).await, 2);
    assert_eq!(released(&till, &[]).await, 0);
    assert_eq!(till.take(till.terms(true)).await.payouts.len(), 2);
}

pub async fn what_is_held_for_its_amount_leaves_once_it_is_released_by_name(bench: &Bench) {
    let maximum = LedgerDefinition { maximum_payout: [(currency("EUR"), 999)].into(), ..everything() };
    let mut entries = merchants(2);
    entries.push(capture("k", "m0", "KWD", "100.000"));
    let till = Till::of(bench, maximum, entries).await;
    let over = till.listed(PayoutFilter { state: Some(InstructionState::Held), ..PayoutFilter::default() }).await;
    assert_eq!(over.iter().map(|payout| payout.currency.as_str()).collect::<Vec<_>>(), ["EUR", "EUR"]);
    assert_eq!(till.take_one(low(&till)).await.attempt, 1, "that currency has no maximum");
    assert_eq!(released(&till, &[]).await, 0, "only by name");
    assert_eq!(released(&till, &[&over[0].key]).await, 1);
    let payout = till.take_one(low(&till)).await;
    assert_eq!(payout.idempotency_key, over[0].key);
    till.record(&payout, back()).await;
    assert_eq!(till.take_one(low(&till)).await.attempt, 2, "it is not held a second time");
    let view = till.view(&over[1].key).await;
    assert_eq!((view.state, view.reason.as_deref()), (InstructionState::Held, Some("over_limit")));
    // Whoever releases it says nothing about its merchant.
    let merchant = over[1].merchant.as_str();
    assert_eq!(hold(bench, merchant, "police").await.held, 0, "it is held already");
    assert_eq!(released(&till, &[&over[1].key]).await, 1);
    let view = till.view(&over[1].key).await;
    assert_eq!((view.state, view.reason.as_deref()), (InstructionState::Held, Some("merchant")));
    assert_eq!(till.take(low(&till)).await.payouts, []);
    assert_eq!(freed(bench, merchant).await, Some(1));
    assert_eq!(till.take_one(low(&till)).await.idempotency_key, over[1].key);
}

pub async fn what_was_left_in_the_store_is_sent_only_once_it_is_released_by_name(bench: &Bench) {
    let left = LedgerDefinition { release: Release::Manual, ..left_in_store() };
    let mut till = Till::of(bench, left, merchants(2)).await;
    assert_eq!(released(&till, &[]).await, 2, "for others to take from the store");
    till.edit(everything()).await;
    let taken = till.take(till.terms(true)).await;
    assert_eq!((taken.payouts.len(), taken.held), (0, 2), "an edit sends nothing that somebody may have taken");
    let listed = till.payouts().await;
    for view in &listed {
        assert_eq!((view.state, view.reason.as_deref()), (InstructionState::Held, Some("approval")));
        assert_eq!((view.attempts, view.in_doubt, view.first_sent_at), (0, false, None));
        assert!(view.last_error.as_deref().is_some_and(|why| why.contains("may have taken it")), "{view:?}");
    }
    assert_eq!(released(&till, &[]).await, 0, "only by name");
    assert_eq!(released(&till, &[&listed[1].key]).await, 1);
    let sent = till.take_one(till.terms(true)).await;
    assert_eq!(sent.idempotency_key, listed[1].key);
    till.record(&sent, back()).await;
    assert_eq!(till.take_one(till.terms(true)).await.attempt, 2, "it is not held a second time");
    bench.import("stripe", merchants(1)).await;
    bench.settled(till.leads.as_ref(), &till.job).await;
    assert_eq!(till.take(till.terms(true)).await.payouts.len(), 1, "what is written since is sent");
}

pub async fn an_amount_above_the_maximum_now_is_held_where_it_was_never_tried(bench: &Bench) {
    let till = Till::open(bench, 2).await;
    let tried = till.take_as(PayoutTake { limit: 1, ..order(till.terms(true)) }).await.payouts.remove(0);
    till.record(&tried, back()).await;
    let just = PayoutTerms { maximum: [(currency("EUR"), 1000)].into(), ..till.terms(true) };
    let taken = till.take(just).await;
    assert_eq!((taken.payouts.len(), taken.held), (2, 0), "the maximum itself is not above it");
    for payout in &taken.payouts {
        till.record(payout, back()).await;
    }
    assert_eq!(till.take(low(&till)).await.payouts.len(), 2, "they were tried");
    bench.import("stripe", merchants(1)).await;
    bench.settled(till.leads.as_ref(), &till.job).await;
    let taken = till.take(low(&till)).await;
    assert_eq!((taken.payouts.len(), taken.held, taken.full), (0, 1, false));
    let view = till.payouts().await.remove(2);
    assert_eq!((view.state, view.reason.as_deref()), (InstructionState::Held, Some("over_limit")));
    assert_eq!((view.attempts, view.in_doubt, view.first_sent_at), (0, false, None));
    let released = bench.store.release_payouts(view.run, &[view.key], "seen", &actor()).await;
    assert_eq!(released, Ok(ReleaseOutcome::Released { payouts: 1 }));
    assert_eq!(till.take(low(&till)).await.payouts.len(), 1);
}

pub async fn nothing_pending_of_a_merchant_on_hold_is_sent(bench: &Bench) {
    let till = Till::open(bench, 3).await;
    let sent = till.take_as(PayoutTake { limit: 1, ..order(till.terms(true)) }).await.payouts.remove(0);
    for (merchant, held, on_the_wire) in [("m0", 0, 1), ("m1", 1, 0), ("nobody", 0, 0)] {
        let report = hold(bench, merchant, "police").await;
        assert_eq!(report, HoldReport { already: false, held, on_the_wire });
    }
    assert_eq!(hold(bench, "m1", "again").await, HoldReport { already: true, held: 0, on_the_wire: 0 });
    let other = till.take_one(till.terms(true)).await;
    assert_eq!(till.view(&other.idempotency_key).await.merchant, "m2");
    // What comes back of the first stays here.
    till.record(&sent, back()).await;
    assert_eq!(till.take(till.terms(true)).await.held, 1);
    assert_eq!(till.shown(&sent).await, held("merchant", false));
    let holds = bench.store.merchant_holds().await.expect("an answer");
    let listed: Vec<_> = holds.iter().map(|hold| (hold.merchant.as_str(), hold.reason.as_str())).collect();
    assert_eq!(listed, [("m0", "police"), ("m1", "police"), ("nobody", "police")], "the first reason stays");
    assert!(holds.iter().all(|hold| hold.by == "tester@bench"), "{holds:?}");
    assert_eq!((freed(bench, "m0").await, freed(bench, "m1").await), (Some(1), Some(1)));
    let acts = bench.store.history(3).await.expect("an answer").acts;
    let acts: Vec<_> = acts.iter().map(|act| (act.action.as_str(), act.target.as_str(), act.term)).collect();
    let expected = [("merchant release", "m1", None), ("merchant release", "m0", None), ("merchant hold", "m1", None)];
    assert_eq!(acts, expected);
    let before = till.picture().await;
    assert_eq!(freed(bench, "m1").await, None);
    assert_eq!(till.picture().await, before, "nothing changed");
    assert_eq!(freed(bench, "nobody").await, Some(0));
    assert_eq!(till.take(till.terms(true)).await.payouts.len(), 2);
    assert_eq!(bench.store.merchant_holds().await, Ok(Vec::new()));
}

pub async fn a_hold_keeps_a_doubt_and_its_end_frees_only_what_it_held(bench: &Bench) {
    let till = Till::open(bench, 2).await;
    let taken = till.take(till.terms(true)).await.payouts;
    till.record(&taken[0], unknown(SOON)).await;
    till.record(&taken[1], unknown(None)).await;
    assert_eq!(hold(bench, "m0", "police").await, HoldReport { already: false, held: 1, on_the_wire: 0 });
    assert_eq!(hold(bench, "m1", "police").await, HoldReport { already: false, held: 0, on_the_wire: 0 });
    assert_eq!(till.shown(&taken[0]).await, held("merchant", true));
    assert_eq!((freed(bench, "m0").await, freed(bench, "m1").await), (Some(1), Some(0)));
    assert_eq!(till.shown(&taken[0]).await, (InstructionState::Unknown, None, true));
    assert_eq!(till.shown(&taken[1]).await, held("unknown", true));
    let again = till.take_one(till.terms(true)).await;
    assert!(again.in_doubt && again.attempt == 2);
}

pub async fn a_merchant_on_hold_gets_no_unit_and_one_that_it_has_binds_nothing(bench: &Bench) {
    let till = Till::open(bench, 1).await;
    let tenure = till.leads.as_ref();
    bench.import("stripe", vec![capture("s1", "m1", "EUR", "5.00"), capture("s2", "m2", "EUR", "5.00")]).await;
    let planned = bench.netted(tenure, &till.job).await;
    hold(bench, "m1", "police").await;
    assert!(matches!(mine(tenure.settle(&planned, fresh(10), &effect(&planned)).await), SettleOutcome::Settled(_)));
    assert_eq!(bench.unit(planned.id, "EUR:m1").await.state, UnitState::Empty);
    assert_eq!(bench.unit(planned.id, "EUR:m2").await.state, UnitState::Settled);
    assert_eq!(till.open_money().await, "5.00", "it is still open");
    let next = bench.settled(tenure, &till.job).await;
    assert!(bench.units(next.id).await.is_empty());
    assert_eq!(freed(bench, "m1").await, Some(0));
    let after = bench.settled(tenure, &till.job).await;
    assert_eq!(bench.unit(after.id, "EUR:m1").await.state, UnitState::Settled);
    assert_eq!(till.open_money().await, "0.00");
}

pub async fn the_oldest_payout_that_could_be_sent_is_told(bench: &Bench) {
    let oldest = async || bench.store.figures(&election()).await.expect("an answer").oldest_payout_seconds;
    let manual = LedgerDefinition { release: Release::Manual, ..everything() };
    let mut till = Till::of(bench, manual, merchants(1)).await;
    let tenure = till.leads.as_ref();
    let other = bench.job(tenure, definition("other", HandlerDefinition::Ledger(everything()))).await;
    bench.import("stripe", vec![capture("s1", "m9", "EUR", "1.00")]).await;
    bench.settled(tenure, &other).await;
    let told = async || (oldest().await >= 1).then_some(());
    eventually(WAITED, "it has been waiting for a second", async || told().await).await;
    let others = PayoutTerms { job: other.id, ..till.terms(true) };
    let payout = till.take_one(others).await;
    assert_eq!(oldest().await, 0, "one is on the wire, and the older one waits for its release");
    till.record(&payout, back()).await;
    assert!(told().await.is_some(), "it counts from when it was written");
    hold(bench, "m9", "a question").await;
    assert_eq!(oldest().await, 0, "its merchant is on hold");
    assert_eq!(released(&till, &[]).await, 1);
    assert!(told().await.is_some());
    till.edit(left_in_store()).await;
    assert_eq!(oldest().await, 0, "it is left in the store for others");
}

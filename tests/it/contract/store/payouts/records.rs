//! What came of a try is recorded once, with the postings and the carry that follow.

use std::time::Duration;

use bursar::domain::instruction::InstructionState;
use bursar::store::{Payout, PayoutFate, PayoutRecord, PayoutTerms};

use super::super::bench::{Bench, LATER, SOON, mine};
use super::{BANK, Till, back, held, mismatch, of, order, paid, records, rejected, unknown};

pub async fn what_is_paid_leaves_payout_clearing_for_the_bank_once(bench: &Bench) {
    let till = Till::open(bench, 2).await;
    let taken = till.take(till.terms(false)).await.payouts;
    for payout in &taken {
        assert_eq!(till.record(payout, paid()).await, Some(InstructionState::Paid));
        let before = till.picture().await;
        for again in [paid(), rejected(), mismatch(), unknown(None), unknown(SOON), back()] {
            assert_eq!(till.record(payout, again.clone()).await, None, "what is final stays: {again:?}");
        }
        assert_eq!(till.picture().await, before, "nothing changed");
        let view = till.view(&payout.idempotency_key).await;
        assert_eq!((view.reference.as_deref(), view.reason), (Some("R-1"), None));
        assert!(view.final_at.is_some() && !view.in_doubt && view.next_attempt_at.is_none());
    }
    assert_eq!(till.open_money().await, "0.00");
    assert_eq!(till.take(till.terms(true)).await.payouts, []);
}

pub async fn a_rejected_net_comes_back_once_and_is_paid_by_the_next_run_under_another_key(bench: &Bench) {
    let till = Till::open(bench, 1).await;
    let first = till.take_one(till.terms(true)).await;
    assert_eq!(till.record(&first, rejected()).await, Some(InstructionState::Rejected));
    assert_eq!(till.record(&first, rejected()).await, None);
    let view = till.view(&first.idempotency_key).await;
    assert_eq!((view.last_error.as_deref(), view.in_doubt, view.reason), (Some("answered 422"), false, None));
    assert!(view.final_at.is_some());
    assert_eq!(till.open_money().await, "10.00");
    assert_eq!(till.take(till.terms(true)).await.payouts, [], "its key is never used again");
    bench.settled(till.leads.as_ref(), &till.job).await;
    assert_eq!(till.open_money().await, "0.00");
    let again = till.take_one(till.terms(true)).await;
    assert_ne!(again.idempotency_key, first.idempotency_key);
    assert_eq!(till.view(&again.idempotency_key).await.amount, "10.00");
    assert_eq!(till.record(&again, paid()).await, Some(InstructionState::Paid));
}

pub async fn a_payout_is_recorded_only_where_its_try_is_the_one_on_the_wire(bench: &Bench) {
    let till = Till::open(bench, 3).await;
    let terms = till.terms(false);
    let taken = till.take(terms.clone()).await.payouts;
    let payout = &taken[0];
    let before = till.picture().await;
    let on = |attempt| PayoutRecord { attempt, ..of(payout, paid()) };
    let nobody = PayoutRecord { instruction: i64::MAX, ..on(1) };
    let asked = PayoutRecord { asked: true, ..on(1) };
    for strange in [on(0), on(2), nobody, asked] {
        assert_eq!(till.record_all(&records(vec![strange.clone()])).await.states, [], "{strange:?}");
    }
    assert_eq!(till.picture().await, before, "nothing changed");
    // Those that are as expected count beside those that are not, in the order of ids.
    let told = till.record_all(&records(vec![of(&taken[2], paid()), on(2), of(&taken[1], rejected())])).await;
    let expected = [(taken[1].instruction, InstructionState::Rejected), (taken[2].instruction, InstructionState::Paid)];
    assert_eq!(told.states, expected);
    // A late record of an earlier try is not taken for the next one's.
    assert_eq!(till.record(payout, back()).await, Some(InstructionState::Pending));
    assert_eq!(till.record(payout, paid()).await, None, "it is on the wire no more");
    let again = till.take_one(terms).await;
    assert_eq!(till.record(payout, paid()).await, None);
    assert_eq!(till.record(payout, unknown(None)).await, None);
    assert_eq!(till.shown(&again).await, (InstructionState::Sending, None, false));
    assert_eq!(till.record(&again, paid()).await, Some(InstructionState::Paid));
}

pub async fn what_was_put_back_and_never_left_has_a_key_that_has_not_begun_to_count(bench: &Bench) {
    let till = Till::open(bench, 1).await;
    let terms = till.terms(false);
    let first = till.take_one(terms.clone()).await;
    let begun = till.view(&first.idempotency_key).await;
    assert!(begun.first_sent_at.is_some() && begun.key_valid_until.is_some());
    assert_eq!(till.record(&first, back()).await, Some(InstructionState::Pending));
    let seen = till.view(&first.idempotency_key).await;
    assert_eq!((seen.first_sent_at, seen.key_valid_until, seen.attempts), (None, None, 1));
    assert_eq!((seen.last_error, seen.next_attempt_at, seen.in_doubt), (None, None, false));
    let again = till.take_one(terms.clone()).await;
    assert_eq!((again.attempt, again.in_doubt), (2, false));
    assert!(till.view(&again.idempotency_key).await.first_sent_at > begun.first_sent_at);
    // It waits where it is told to, and keeps what was said last.
    let told = PayoutFate::Back { left: false, error: Some("no connection".to_owned()), again_in: SOON };
    till.record(&again, told).await;
    let third = till.take_again(&terms).await;
    till.record(&third, PayoutFate::Back { left: false, error: None, again_in: LATER }).await;
    let seen = till.view(&third.idempotency_key).await;
    assert_eq!(seen.last_error.as_deref(), Some("no connection"));
    assert!(seen.next_attempt_at.is_some_and(|at| (at - third.taken_at).num_minutes() >= 59), "{seen:?}");
}

pub async fn what_left_and_was_proved_undone_keeps_the_time_of_its_first_try(bench: &Bench) {
    let till = Till::open(bench, 1).await;
    let terms = till.terms(true);
    let put_off = || PayoutFate::Back { left: true, error: Some("answered 429".to_owned()), again_in: SOON };
    let first = till.take_one(terms.clone()).await;
    assert!(!first.left_before);
    let begun = till.view(&first.idempotency_key).await;
    assert_eq!(till.record(&first, put_off()).await, Some(InstructionState::Pending));
    let again = till.take_again(&terms).await;
    assert!(again.left_before && !again.in_doubt && again.leaves_within < first.leaves_within);
    // Put back without a byte of it, it is as it was: the receiver has seen its key.
    let back = PayoutFate::Back { left: again.left_before, error: None, again_in: None };
    assert_eq!(till.record(&again, back).await, Some(InstructionState::Pending));
    till.take_one(terms.clone()).await;
    assert_eq!(mine(till.leads.put_back_payouts(BANK, &[]).await), 1);
    let seen = till.view(&first.idempotency_key).await;
    assert_eq!((seen.state, seen.in_doubt), (InstructionState::Pending, false));
    assert_eq!((seen.first_sent_at, seen.key_valid_until), (begun.first_sent_at, begun.key_valid_until));
    // Once the receiver may have forgotten it, nobody knows what another try would do.
    let short = PayoutTerms { key_valid_for: Duration::from_millis(1), ..terms };
    till.is_held_instead(&order(short)).await;
    assert_eq!(till.shown(&first).await, held("unknown", true));
    let said = till.view(&first.idempotency_key).await.last_error.expect("why");
    assert!(said.contains("forgotten its key"), "{said}");
}

pub async fn an_error_is_kept_within_its_bound(bench: &Bench) {
    let till = Till::open(bench, 1).await;
    let payout: Payout = till.take_one(till.terms(true)).await;
    let error = format!("{}\0", "é".repeat(1500));
    till.record(&payout, PayoutFate::Unknown { error, again_in: Some(Duration::MAX) }).await;
    let view = till.view(&payout.idempotency_key).await;
    assert_eq!(view.last_error, Some("é".repeat(1000)));
    assert!(
        view.next_attempt_at.is_some_and(|at| (at - payout.taken_at).num_days() >= 365),
        "a year at most: {view:?}"
    );
}

pub async fn a_mismatch_is_in_doubt_and_for_a_person(bench: &Bench) {
    let till = Till::open(bench, 1).await;
    let payout = till.take_one(till.terms(true)).await;
    assert_eq!(till.record(&payout, mismatch()).await, Some(InstructionState::Held));
    assert_eq!(till.shown(&payout).await, held("mismatch", true));
    let view = till.view(&payout.idempotency_key).await;
    assert_eq!((view.last_error.as_deref(), view.final_at), (Some("another amount"), None));
    assert_eq!(till.take(till.terms(true)).await.payouts, []);
    assert_eq!(till.open_money().await, "0.00", "nothing comes back");
}

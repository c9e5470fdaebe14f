//! A person's word on what came of a payout: taken where nothing can contradict it, with the postings that follow.

use std::time::Duration;

use bursar::domain::instruction::InstructionState;
use bursar::store::{PayoutFate, PayoutTake, PayoutTerms, Resolution, ResolveOutcome};

use super::super::bench::{Bench, SOON, actor, capture, election, everything, left_in_store, mine};
use super::{Till, held, order, paid, rejected, unknown};
use chrono::TimeDelta;

async fn resolve(bench: &Bench, key: &str, word: &Resolution) -> ResolveOutcome {
    bench.store.resolve_payout(key, word, "the bank's letter", &actor()).await.expect("an answer")
}

fn was_paid() -> Resolution {
    Resolution::Paid("R-2".to_owned())
}

fn not_paid() -> Resolution {
    Resolution::NotPaid { bank_confirmed: None }
}

fn confirmed() -> Resolution {
    Resolution::NotPaid { bank_confirmed: Some("W-3".to_owned()) }
}

fn returned() -> Resolution {
    Resolution::Returned("B-4".to_owned())
}

/// Sees that none of these words is taken, and that nothing changes.
async fn refused(till: &Till<'_>, key: &str, state: InstructionState, words: &[Resolution]) {
    let before = till.picture().await;
    for word in words {
        let outcome = resolve(till.bench, key, word).await;
        let ResolveOutcome::Refused { state: found, why } = outcome else { panic!("{word:?}: {outcome:?}") };
        assert!(found == state && !why.is_empty(), "{word:?}: {found:?} {why}");
    }
    assert_eq!(till.picture().await, before, "nothing changed");
}

async fn resolved(till: &Till<'_>, key: &str, word: &Resolution, was: InstructionState, now: InstructionState) {
    assert_eq!(resolve(till.bench, key, word).await, ResolveOutcome::Resolved { was, now }, "{word:?}");
    let view = till.view(key).await;
    assert_eq!((view.state, view.reason, view.next_attempt_at), (now, None, None));
    assert!(view.final_at.is_some());
    let act = till.bench.store.history(1).await.expect("an answer").acts.remove(0);
    assert_eq!((act.action.as_str(), act.target.as_str(), act.term), ("payouts resolve", key, Some(1)));
    assert_eq!((act.reason.as_deref(), act.by.as_str()), (Some("the bank's letter"), "tester@bench"));
}

pub async fn what_is_held_is_paid_by_a_persons_word_and_stays_in_doubt(bench: &Bench) {
    let till = Till::open(bench, 1).await;
    let payout = till.take_one(till.terms(false)).await;
    let key = payout.idempotency_key.as_str();
    refused(&till, key, InstructionState::Sending, &[was_paid(), not_paid(), confirmed(), returned()]).await;
    till.record(&payout, unknown(None)).await;
    refused(&till, key, InstructionState::Held, &[returned()]).await;
    resolved(&till, key, &was_paid(), InstructionState::Held, InstructionState::Paid).await;
    assert_eq!(till.shown(&payout).await, (InstructionState::Paid, None, true));
    assert_eq!(till.view(key).await.reference.as_deref(), Some("R-2"));
    refused(&till, key, InstructionState::Paid, &[was_paid(), not_paid(), confirmed()]).await;
    assert_eq!(till.open_money().await, "0.00");
    assert_eq!(resolve(bench, "bnone", &was_paid()).await, ResolveOutcome::NotFound);
}

pub async fn what_was_not_paid_comes_back_by_the_banks_word_or_once_its_key_is_no_longer_valid(bench: &Bench) {
    let till = Till::open(bench, 2).await;
    let one = |terms| PayoutTake { limit: 1, ..order(terms) };
    let valid = till.take_as(one(till.terms(false))).await.payouts.remove(0);
    let over = PayoutTerms { key_valid_for: Duration::ZERO, ..till.terms(false) };
    let over = till.take_as(one(over)).await.payouts.remove(0);
    for payout in [&valid, &over] {
        assert_eq!(till.record(payout, unknown(None)).await, Some(InstructionState::Held));
    }
    let (valid, over) = (valid.idempotency_key.as_str(), over.idempotency_key.as_str());
    refused(&till, valid, InstructionState::Held, &[not_paid()]).await;
    resolved(&till, valid, &confirmed(), InstructionState::Held, InstructionState::Rejected).await;
    assert_eq!(till.view(valid).await.reference.as_deref(), Some("W-3"));
    assert_eq!(till.open_money().await, "10.00", "a person's word reverses what is in doubt");
    resolved(&till, over, &not_paid(), InstructionState::Held, InstructionState::Rejected).await;
    assert_eq!(till.open_money().await, "20.00");
    for key in [valid, over] {
        let all = [was_paid(), not_paid(), confirmed(), returned()];
        refused(&till, key, InstructionState::Rejected, &all).await;
    }
    // What came back is paid by the next run.
    bench.settled(till.leads.as_ref(), &till.job).await;
    assert_eq!((till.open_money().await.as_str(), till.take(till.terms(false)).await.payouts.len()), ("0.00", 2));
}

pub async fn what_the_bank_sent_back_comes_back_as_a_carry_once(bench: &Bench) {
    let till = Till::open(bench, 2).await;
    let taken = till.take(till.terms(true)).await.payouts;
    let key = taken[0].idempotency_key.as_str();
    till.record(&taken[0], paid()).await;
    till.record(&taken[1], rejected()).await;
    assert_eq!(till.open_money().await, "10.00");
    refused(&till, &taken[1].idempotency_key, InstructionState::Rejected, &[returned()]).await;
    resolved(&till, key, &returned(), InstructionState::Paid, InstructionState::Returned).await;
    let view = till.view(key).await;
    let names = (view.reference.as_deref(), view.return_reference.as_deref());
    assert_eq!(names, (Some("R-1"), Some("B-4")), "the payment keeps its own");
    let day = till.run.value_date;
    for name in ["R-1", "B-4"] {
        let days = (day + TimeDelta::days(9), day + TimeDelta::days(9));
        let stated = bench.store.stated_payouts(&[], &[name.to_owned()], days).await.expect("an answer");
        let found: Vec<_> =
            stated.iter().map(|payout| (payout.key.as_str(), payout.return_reference.as_deref())).collect();
        assert_eq!(found, [(key, Some("B-4"))], "{name}");
    }
    assert_eq!(till.open_money().await, "20.00");
    refused(&till, key, InstructionState::Returned, &[returned(), was_paid(), not_paid(), confirmed()]).await;
    bench.settled(till.leads.as_ref(), &till.job).await;
    assert_eq!(till.open_money().await, "0.00");
    let again = till.take(till.terms(true)).await.payouts;
    assert!(again.len() == 2 && again.iter().all(|payout| payout.idempotency_key != key));
}

pub async fn a_word_is_taken_while_the_election_is_halted_and_of_what_waits(bench: &Bench) {
    let mut till = Till::open(bench, 1).await;
    let terms = till.terms(true);
    till.edit(left_in_store()).await;
    bench.import("stripe", vec![capture("s1", "m1", "EUR", "10.00")]).await;
    bench.settled(till.leads.as_ref(), &till.job).await;
    let one = PayoutTake { limit: 1, ..order(terms) };
    let doubted = till.take_as(one).await.payouts.remove(0);
    till.record(&doubted, unknown(SOON)).await;
    let pending = till.payouts().await.remove(1).key;
    bench.store.halt(&election(), "month end", &actor()).await.expect("halted");
    resolved(&till, &doubted.idempotency_key, &was_paid(), InstructionState::Unknown, InstructionState::Paid).await;
    // Somebody may have taken it from the store: its run sends nothing by itself.
    refused(&till, &pending, InstructionState::Pending, &[not_paid(), returned()]).await;
    resolved(&till, &pending, &confirmed(), InstructionState::Pending, InstructionState::Rejected).await;
    assert_eq!(till.open_money().await, "10.00");
}

pub async fn what_was_surely_never_sent_was_not_paid(bench: &Bench) {
    let mut till = Till::open(bench, 3).await;
    let taken = till.take_as(PayoutTake { limit: 2, ..order(till.terms(false)) }).await.payouts;
    let (back, doubted) = (taken[0].idempotency_key.as_str(), taken[1].idempotency_key.as_str());
    till.record(&taken[0], super::back()).await;
    till.record(&taken[1], unknown(None)).await;
    let never = till.payouts().await.remove(2).key;
    // While its job leaves payouts in the store, somebody may take this one too.
    till.edit(left_in_store()).await;
    refused(&till, &never, InstructionState::Pending, &[not_paid()]).await;
    till.edit(everything()).await;
    for key in [back, &never] {
        resolved(&till, key, &not_paid(), InstructionState::Pending, InstructionState::Rejected).await;
    }
    refused(&till, doubted, InstructionState::Held, &[not_paid()]).await;
    assert_eq!(till.shown(&taken[1]).await, held("unknown", true));
    assert_eq!(till.open_money().await, "20.00");
    assert_eq!(mine(till.leads.payout_jobs().await), []);
}

pub async fn nobody_says_of_what_others_may_have_taken_that_it_was_never_sent(bench: &Bench) {
    let mut till = Till::of(bench, left_in_store(), super::merchants(2)).await;
    till.edit(everything()).await;
    let keys: Vec<String> = till.payouts().await.into_iter().map(|payout| payout.key).collect();
    refused(&till, &keys[0], InstructionState::Pending, &[not_paid()]).await;
    assert_eq!(till.take(till.terms(true)).await.held, 2);
    refused(&till, &keys[0], InstructionState::Held, &[not_paid()]).await;
    resolved(&till, &keys[0], &was_paid(), InstructionState::Held, InstructionState::Paid).await;
    resolved(&till, &keys[1], &confirmed(), InstructionState::Held, InstructionState::Rejected).await;
    assert_eq!(till.open_money().await, "10.00");
}

pub async fn a_stop_that_was_an_answer_is_no_proof_that_nothing_was_sent(bench: &Bench) {
    let till = Till::open(bench, 1).await;
    let payout = till.take_one(till.terms(true)).await;
    let answered = PayoutFate::Back { left: true, error: Some("answered 401".to_owned()), again_in: None };
    assert_eq!(till.record(&payout, answered).await, Some(InstructionState::Pending));
    refused(&till, &payout.idempotency_key, InstructionState::Pending, &[not_paid()]).await;
}

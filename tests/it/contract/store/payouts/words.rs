//! A person's word on what came of a payout: taken where nothing can contradict it, with the postings that follow.

use std::time::Duration;

use bursar::domain::instruction::InstructionState;
use bursar::domain::job::{LedgerDefinition, PayoutDefinition};
use bursar::store::{PayoutTake, PayoutTerms, Resolution, ResolveOutcome, Scope};

use super::super::bench::{Bench, SOON, actor, everything, mine};
use super::{Till, held, merchants, order, paid, rejected, unknown};
use crate::outside::ground;

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
    assert_eq!(till.view(key).await.reference.as_deref(), Some("B-4"));
    assert_eq!(till.open_money().await, "20.00");
    refused(&till, key, InstructionState::Returned, &[returned(), was_paid(), not_paid(), confirmed()]).await;
    bench.settled(till.leads.as_ref(), &till.job).await;
    assert_eq!(till.open_money().await, "0.00");
    let again = till.take(till.terms(true)).await.payouts;
    assert!(again.len() == 2 && again.iter().all(|payout| payout.idempotency_key != key));
}

pub async fn a_word_is_taken_while_the_election_is_halted_and_of_what_waits(bench: &Bench) {
    let till = Till::open(bench, 2).await;
    let one = PayoutTake { limit: 1, ..order(till.terms(true)) };
    let doubted = till.take_as(one).await.payouts.remove(0);
    till.record(&doubted, unknown(SOON)).await;
    let pending = till.payouts().await.remove(1).key;
    bench.store.halt(&Scope::All, "month end", &actor()).await.expect("halted");
    resolved(&till, &doubted.idempotency_key, &was_paid(), InstructionState::Unknown, InstructionState::Paid).await;
    // Somebody may have taken it from the store: this job sends nothing by itself.
    refused(&till, &pending, InstructionState::Pending, &[not_paid(), returned()]).await;
    resolved(&till, &pending, &confirmed(), InstructionState::Pending, InstructionState::Rejected).await;
    assert_eq!(till.open_money().await, "10.00");
}

pub async fn what_was_surely_never_sent_was_not_paid(bench: &Bench) {
    let http = PayoutDefinition::Http(Box::new(ground::definition("https://bank.test/payouts", false)));
    let sent = LedgerDefinition { payout: http, ..everything() };
    let till = Till::of(bench, sent, merchants(3)).await;
    let taken = till.take_as(PayoutTake { limit: 2, ..order(till.terms(false)) }).await.payouts;
    let (back, doubted) = (taken[0].idempotency_key.as_str(), taken[1].idempotency_key.as_str());
    till.record(&taken[0], super::back()).await;
    till.record(&taken[1], unknown(None)).await;
    let never = till.payouts().await.remove(2).key;
    for key in [back, &never] {
        resolved(&till, key, &not_paid(), InstructionState::Pending, InstructionState::Rejected).await;
    }
    refused(&till, doubted, InstructionState::Held, &[not_paid()]).await;
    assert_eq!(till.shown(&taken[1]).await, held("unknown", true));
    assert_eq!(till.open_money().await, "20.00");
    assert_eq!(mine(till.leads.payout_jobs().await), []);
}

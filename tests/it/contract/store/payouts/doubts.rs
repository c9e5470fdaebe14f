//! A doubt, once there, stays: nothing in doubt is reversed, and only an idempotent receiver that still knows the key is sent
//! it again.

use std::time::Duration;

use bursar::domain::instruction::InstructionState;
use bursar::store::{Errand, PayoutRecord, PayoutTake, PayoutTerms, Recovery};

use super::super::bench::{Bench, SOON, mine};
use super::{Till, back, elsewhere, held, of, order, paid, records, rejected, unknown};

/// A validity that is over before it begins, for what has that time-out twice to go.
fn too_short(terms: PayoutTerms) -> PayoutTerms {
    PayoutTerms { key_valid_for: Duration::from_secs(3), timeout: Duration::from_secs(2), ..terms }
}

/// The error of what was held.
async fn error(till: &Till<'_>) -> Option<String> {
    till.payouts().await.remove(0).last_error
}

pub async fn nothing_in_doubt_is_reversed_and_no_doubt_is_forgotten(bench: &Bench) {
    let till = Till::open(bench, 1).await;
    let terms = till.terms(true);
    let first = till.doubt_one(terms.clone()).await;
    let begun = till.view(&first.idempotency_key).await.first_sent_at;
    let second = till.take_again(&terms).await;
    assert!(second.in_doubt && second.attempt == 2 && second.errand == Errand::Send);
    assert_eq!((&second.idempotency_key, &second.body), (&first.idempotency_key, &first.body));
    assert_eq!(till.record(&first, paid()).await, None, "a late record is not taken for the next try's");
    assert_eq!(till.record(&second, back()).await, Some(InstructionState::Unknown));
    assert_eq!(till.shown(&second).await, (InstructionState::Unknown, None, true), "as it was before the try");
    assert_eq!(till.view(&first.idempotency_key).await.first_sent_at, begun, "its key counts from the first try");
    let third = till.take_again(&terms).await;
    assert_eq!(till.record(&third, rejected()).await, Some(InstructionState::Held));
    assert_eq!(till.shown(&third).await, held("unknown", true));
    assert_eq!(till.take(terms).await.payouts, []);
    assert_eq!(till.open_money().await, "0.00", "nothing comes back");
}

pub async fn a_doubt_that_is_paid_in_the_end_is_still_on_record(bench: &Bench) {
    let till = Till::open(bench, 1).await;
    till.doubt_one(till.terms(true)).await;
    let again = till.take_again(&till.terms(true)).await;
    assert_eq!(till.record(&again, paid()).await, Some(InstructionState::Paid));
    assert_eq!(till.shown(&again).await, (InstructionState::Paid, None, true));
}

pub async fn past_the_validity_of_its_key_nothing_in_doubt_is_sent(bench: &Bench) {
    let till = Till::open(bench, 1).await;
    let terms = too_short(till.terms(true));
    let first = till.take_one(terms.clone()).await;
    assert_eq!(first.leaves_within, Duration::ZERO, "it is too late already");
    assert_eq!(till.record(&first, back()).await, Some(InstructionState::Pending));
    let first = till.doubt_one(terms.clone()).await;
    // Nor does an edit bring it back to life.
    till.is_held_instead(&order(till.terms(true))).await;
    assert_eq!(till.shown(&first).await, held("unknown", true));
    assert_eq!(error(&till).await.as_deref(), Some("in doubt, and its key may be forgotten by the receiver"));
    assert_eq!(till.take(terms).await.payouts, []);
}

pub async fn an_edit_that_shortens_the_validity_counts_from_the_first_try(bench: &Bench) {
    let till = Till::open(bench, 1).await;
    let first = till.doubt_one(till.terms(true)).await;
    let again = till.take_again(&till.terms(true)).await;
    assert!(again.leaves_within > Duration::from_hours(19) && again.leaves_within <= first.leaves_within);
    assert_eq!(till.record(&again, unknown(SOON)).await, Some(InstructionState::Unknown));
    till.is_held_instead(&order(too_short(till.terms(true)))).await;
    assert_eq!(till.shown(&first).await, held("unknown", true));
}

pub async fn an_unknown_outcome_of_a_receiver_that_is_not_idempotent_is_for_a_person(bench: &Bench) {
    let mut till = Till::open(bench, 3).await;
    let taken = till.take(till.terms(false)).await.payouts;
    assert_eq!(till.record(&taken[0], unknown(None)).await, Some(InstructionState::Held));
    assert_eq!(till.shown(&taken[0]).await, held("unknown", true));
    assert_eq!(till.view(&taken[0].idempotency_key).await.last_error.as_deref(), Some("no answer"));
    // Where it would be taken again, it is held by the take.
    assert_eq!(till.record(&taken[1], unknown(SOON)).await, Some(InstructionState::Unknown));
    till.is_held_instead(&order(till.terms(false))).await;
    assert_eq!(till.shown(&taken[1]).await, held("unknown", true));
    // The third one's leader dies.
    assert_eq!(till.succeed().await, Recovery { calls_unknown: 1, ..Recovery::default() });
    assert_eq!(till.shown(&taken[2]).await, held("unknown", true));
    let unit = bench.unit(till.run.id, "EUR:m2").await;
    assert_eq!(unit.state.as_str(), "settled", "a held payout sets no unit aside");
    assert_eq!(till.take(till.terms(true)).await.payouts, [], "nor does a later definition make it idempotent");
}

pub async fn what_a_lower_term_was_sending_is_in_doubt_and_asked_for_or_sent_again_where_it_can_be(bench: &Bench) {
    let mut till = Till::open(bench, 3).await;
    let one = |terms| PayoutTake { limit: 1, ..order(terms) };
    let again = till.take_as(one(till.terms(true))).await.payouts.remove(0);
    let asked = till.take_as(one(till.asks(false))).await.payouts.remove(0);
    let neither = till.take_as(one(till.terms(false))).await.payouts.remove(0);
    assert_eq!(mine(till.leads.recover().await), Recovery::default(), "its own are not lost");
    assert_eq!(till.succeed().await.calls_unknown, 3);
    assert_eq!(till.shown(&again).await, (InstructionState::Unknown, None, true));
    assert_eq!(till.shown(&asked).await, (InstructionState::Unknown, None, true));
    assert_eq!(till.shown(&neither).await, held("unknown", true));
    let said = till.view(&again.idempotency_key).await.last_error.expect("why");
    assert!(said.contains("term 1 ended"), "{said}");
    let mut taken = till.take(till.asks(true)).await;
    assert_eq!((taken.payouts.len(), taken.held), (2, 0));
    let last = taken.payouts.remove(1);
    let first = taken.payouts.remove(0);
    assert_eq!((first.instruction, first.errand, first.attempt), (again.instruction, Errand::Send, 2));
    assert_eq!((last.instruction, last.errand, last.attempt), (asked.instruction, Errand::Ask { last: false }, 2));
    assert_eq!(till.record(&first, paid()).await, Some(InstructionState::Paid));
    assert_eq!(till.record(&last, paid()).await, Some(InstructionState::Paid));
}

pub async fn no_doubt_moves_to_another_receiver(bench: &Bench) {
    let mut till = Till::open(bench, 2).await;
    let taken = till.take(till.asks(true)).await.payouts;
    assert_eq!(till.record(&taken[0], back()).await, Some(InstructionState::Pending));
    assert_eq!(till.succeed().await.calls_unknown, 1);
    let moved = till.take_as(elsewhere(till.asks(true))).await;
    assert_eq!((moved.payouts.len(), moved.held), (1, 1), "what is not in doubt may go there");
    assert_eq!(moved.payouts[0].instruction, taken[0].instruction);
    assert_eq!(till.shown(&taken[1]).await, held("unknown", true));
    let said = till.view(&taken[1].idempotency_key).await.last_error.expect("why");
    assert!(said.contains("another receiver"), "{said}");
}

pub async fn no_doubt_moves_to_another_path_of_its_receiver(bench: &Bench) {
    let mut till = Till::open(bench, 2).await;
    let taken = till.take(till.asks(true)).await.payouts;
    assert_eq!(till.record(&taken[0], back()).await, Some(InstructionState::Pending));
    assert_eq!(till.succeed().await.calls_unknown, 1);
    let path = PayoutTerms { url: "https://bank.test/v2/payouts".to_owned(), ..till.asks(true) };
    let moved = till.take(path).await;
    assert_eq!((moved.payouts.len(), moved.held), (1, 1), "what is not in doubt may go there");
    assert_eq!(moved.payouts[0].instruction, taken[0].instruction);
    assert_eq!(till.shown(&taken[1]).await, held("unknown", true));
}

pub async fn an_edit_makes_no_doubt_idempotent(bench: &Bench) {
    let till = Till::open(bench, 1).await;
    till.doubt_one(till.asks(false)).await;
    for _ in 0..2 {
        let asked = till.take_again(&till.asks(true)).await;
        assert_eq!(asked.errand, Errand::Ask { last: false }, "nor does asking for it");
        assert_eq!(till.record(&asked, unknown(SOON)).await, Some(InstructionState::Unknown));
    }
    till.is_held_instead(&order(till.terms(true))).await;
}

pub async fn what_is_not_idempotent_any_more_is_not_sent_again(bench: &Bench) {
    let till = Till::open(bench, 1).await;
    let first = till.doubt_one(till.terms(true)).await;
    till.is_held_instead(&order(till.terms(false))).await;
    assert_eq!(till.shown(&first).await, held("unknown", true));
}

pub async fn a_doubt_is_asked_for_where_it_can_be_and_never_sent_again_where_that_could_pay_twice(bench: &Bench) {
    let till = Till::open(bench, 1).await;
    let first = till.doubt_one(till.asks(false)).await;
    let second = till.take_again(&till.asks(false)).await;
    assert_eq!((second.errand, second.attempt), (Errand::Ask { last: false }, 2));
    assert_eq!(till.shown(&second).await, (InstructionState::Unknown, None, true), "it is not on the wire");
    let waits = till.take(till.asks(false)).await;
    assert_eq!((waits.payouts, waits.held), (vec![], 0), "nor asked for twice at a time");
    assert!(waits.next_in.is_some_and(|wait| wait > Duration::from_secs(29)), "{:?}", waits.next_in);
    let sent = PayoutRecord { asked: false, ..of(&second, paid()) };
    assert_eq!(till.record_all(&records(vec![sent])).await.states, [], "it was not sent");
    assert_eq!(till.record(&second, unknown(SOON)).await, Some(InstructionState::Unknown));
    assert_eq!(till.record(&second, unknown(None)).await, Some(InstructionState::Held), "it is still that try's");
    assert_eq!(till.shown(&first).await, held("unknown", true));
}

pub async fn an_idempotent_receiver_that_can_be_asked_is_asked_first(bench: &Bench) {
    let till = Till::open(bench, 1).await;
    till.doubt_one(till.asks(true)).await;
    let again = till.take_again(&till.asks(true)).await;
    assert_eq!((again.errand, again.in_doubt), (Errand::AskThenSend, true));
    assert_eq!(till.shown(&again).await, (InstructionState::Sending, None, true));
    assert_eq!(till.record(&again, unknown(SOON)).await, Some(InstructionState::Unknown));
    // It can be asked no more.
    let last = till.take_again(&till.terms(true)).await;
    assert_eq!(last.errand, Errand::Send);
    assert_eq!(till.record(&last, paid()).await, Some(InstructionState::Paid));
}

pub async fn past_the_validity_of_its_key_a_doubt_is_asked_for_one_last_time(bench: &Bench) {
    let till = Till::open(bench, 1).await;
    let terms = too_short(till.asks(true));
    till.doubt_one(terms.clone()).await;
    let last = till.take_again(&terms).await;
    assert_eq!((last.errand, last.leaves_within), (Errand::Ask { last: true }, Duration::ZERO));
    assert_eq!(till.record(&last, rejected()).await, Some(InstructionState::Held), "what is not found now is held");
    assert_eq!(till.shown(&last).await, held("unknown", true));
}

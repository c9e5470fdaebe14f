//! Payouts through the port: on the wire under one term, recorded once with their postings, held where they may not leave, in
//! doubt for good; receivers that stop; and what operators say.

mod acts;
mod receivers;
mod releases;

use std::collections::BTreeMap;
use std::time::Duration;

use bursar::domain::entry::NewEntry;
use bursar::domain::instruction::InstructionState;
use bursar::store::{
    Errand, OpenRun, Payout, PayoutFate, PayoutFilter, PayoutRecord, PayoutRecords, PayoutTake, PayoutTerms,
    PayoutView, PayoutsRecorded, PayoutsTaken,
};

use super::desk::{Desk, Ground, Job, capture, currency, everything, mine, on_every_store};

on_every_store!(
    a_payout_is_taken_once_and_paid_once_with_its_posting,
    a_rejected_net_comes_back_and_is_paid_by_the_next_run_under_another_key,
    nothing_in_doubt_is_reversed_and_no_doubt_is_forgotten,
    what_was_put_back_and_never_left_has_a_key_that_has_not_begun_to_count,
    past_the_validity_of_its_key_nothing_in_doubt_is_sent,
    an_unknown_outcome_of_a_receiver_that_is_not_idempotent_is_for_a_person_at_once,
    an_edit_makes_no_doubt_idempotent_and_no_doubt_moves_to_another_receiver,
    a_doubt_is_asked_for_where_it_can_be_and_never_sent_again_to_a_receiver_that_is_not_idempotent,
    a_take_without_an_answer_is_put_back_and_what_is_in_hand_is_not,
    an_amount_above_the_maximum_now_is_held_and_a_mismatch_is_for_a_person,
);

/// The receiver of these tests.
const BANK: &str = "https://bank.test";

/// What the job's receiver is said to be.
fn terms(job: &Job, idempotent: bool) -> PayoutTerms {
    PayoutTerms {
        job: job.id,
        url: "https://bank.test/payouts".to_owned(),
        idempotent,
        looks_up: false,
        key_valid_for: Duration::from_hours(20),
        timeout: Duration::from_secs(10),
        maximum: BTreeMap::new(),
    }
}

fn order(terms: PayoutTerms, limit: u32) -> PayoutTake {
    PayoutTake {
        origin: BANK.to_owned(),
        jobs: vec![terms],
        limit,
        probe_waits: (Duration::from_hours(1), Duration::from_hours(2)),
        probe_now: false,
    }
}

async fn take<D: Ground>(desk: &Desk<D>, terms: PayoutTerms, limit: u32) -> PayoutsTaken {
    mine(desk.tenure.take_payouts(&order(terms, limit)).await)
}

fn records(records: Vec<PayoutRecord>) -> PayoutRecords {
    let origin = BANK.to_owned();
    PayoutRecords { origin, records, stop: None, max_refusals: 20, probe_after: Duration::from_hours(1) }
}

fn of(payout: &Payout, fate: PayoutFate) -> PayoutRecord {
    let asked = matches!(payout.errand, Errand::Ask { .. });
    PayoutRecord { instruction: payout.instruction, attempt: payout.attempt, asked, fate }
}

async fn record<D: Ground>(desk: &Desk<D>, payout: &Payout, fate: PayoutFate) -> PayoutsRecorded {
    mine(desk.tenure.record_payouts(&records(vec![of(payout, fate)])).await)
}

fn paid() -> PayoutFate {
    PayoutFate::Paid { reference: Some("R-1".to_owned()) }
}

fn rejected() -> PayoutFate {
    PayoutFate::Rejected { error: "answered 422".to_owned() }
}

fn unknown(again_in: Option<Duration>) -> PayoutFate {
    PayoutFate::Unknown { error: "no answer".to_owned(), again_in }
}

fn back() -> PayoutFate {
    PayoutFate::Back { left: false, error: None, again_in: None }
}

/// A job with a settled run over these entries, and its payouts in the order of ids.
async fn settled<D: Ground>(desk: &Desk<D>, entries: Vec<NewEntry>) -> (Job, OpenRun) {
    let job = desk.job("daily", everything()).await;
    desk.import("adyen", entries).await;
    let run = desk.settled(&job).await;
    (job, run)
}

fn merchants(count: usize) -> Vec<NewEntry> {
    (0..count).map(|n| capture(&format!("e{n}"), &format!("m{n}"), "EUR", "10.00")).collect()
}

async fn view<D: Ground>(desk: &Desk<D>, key: &str) -> PayoutView {
    let filter = PayoutFilter { key: Some(key.to_owned()), limit: 1, ..PayoutFilter::default() };
    desk.store.payouts(&filter).await.expect("the store answers").remove(0)
}

async fn state<D: Ground>(desk: &Desk<D>, payout: &Payout) -> (InstructionState, Option<String>, bool) {
    let view = view(desk, &payout.idempotency_key).await;
    (view.state, view.reason, view.in_doubt)
}

async fn a_payout_is_taken_once_and_paid_once_with_its_posting<D: Ground>() {
    let desk = Desk::<D>::new().await;
    let (job, run) = settled(&desk, merchants(3)).await;
    assert_eq!(mine(desk.tenure.payout_jobs().await).iter().map(|job| job.id).collect::<Vec<_>>(), [job.id]);
    let (one, other) = tokio::join!(take(&desk, terms(&job, false), 2), take(&desk, terms(&job, false), 2));
    assert_eq!(one.payouts.len() + other.payouts.len(), 3, "what is on the wire is not taken again");
    for payout in one.payouts.iter().chain(&other.payouts) {
        assert_eq!((payout.attempt, payout.in_doubt, payout.errand), (1, false, Errand::Send));
        assert!(payout.leaves_within > Duration::from_hours(19));
        let told = record(&desk, payout, paid()).await;
        assert_eq!(told.states, [(payout.instruction, InstructionState::Paid)]);
        assert_eq!(record(&desk, payout, paid()).await.states, [], "a second record of it changes nothing");
        assert_eq!(record(&desk, payout, rejected()).await.states, [], "what is final stays");
        assert_eq!(view(&desk, &payout.idempotency_key).await.reference.as_deref(), Some("R-1"));
    }
    assert_eq!(mine(desk.tenure.payout_jobs().await), []);
    let bank: i64 = desk.database.value("select sum(amount)::bigint from bursar.ledger_line where kind = 'bank'").await;
    assert_eq!(bank, 3000);
    assert_eq!(desk.unit(&run, "EUR:m0").await.instructions[0].state, "paid");
    desk.audit_is_clean().await;
}

async fn a_rejected_net_comes_back_and_is_paid_by_the_next_run_under_another_key<D: Ground>() {
    let desk = Desk::<D>::new().await;
    let (job, _) = settled(&desk, merchants(1)).await;
    let first = take(&desk, terms(&job, true), 9).await.payouts.remove(0);
    assert_eq!(record(&desk, &first, rejected()).await.states[0].1, InstructionState::Rejected);
    desk.audit_is_clean().await;
    desk.settled(&job).await;
    let again = take(&desk, terms(&job, true), 9).await.payouts.remove(0);
    assert_ne!(again.idempotency_key, first.idempotency_key);
    assert_eq!(view(&desk, &again.idempotency_key).await.amount, "10.00");
    record(&desk, &again, paid()).await;
    desk.audit_is_clean().await;
}

async fn nothing_in_doubt_is_reversed_and_no_doubt_is_forgotten<D: Ground>() {
    let desk = Desk::<D>::new().await;
    let (job, _) = settled(&desk, merchants(1)).await;
    let first = take(&desk, terms(&job, true), 9).await.payouts.remove(0);
    record(&desk, &first, unknown(Some(Duration::ZERO))).await;
    let second = take(&desk, terms(&job, true), 9).await.payouts.remove(0);
    assert!(second.in_doubt && second.attempt == 2);
    assert_eq!((&second.idempotency_key, &second.body), (&first.idempotency_key, &first.body));
    assert_eq!(record(&desk, &first, paid()).await.states, [], "a late record is not taken for the next try's");
    record(&desk, &second, back()).await;
    assert_eq!(state(&desk, &second).await, (InstructionState::Unknown, None, true), "as it was before the try");
    let third = take(&desk, terms(&job, true), 9).await.payouts.remove(0);
    record(&desk, &third, rejected()).await;
    assert_eq!(state(&desk, &third).await, (InstructionState::Held, Some("unknown".to_owned()), true));
    assert_eq!(take(&desk, terms(&job, true), 9).await.payouts, []);
    desk.audit_is_clean().await;
}

async fn what_was_put_back_and_never_left_has_a_key_that_has_not_begun_to_count<D: Ground>() {
    let desk = Desk::<D>::new().await;
    let (job, _) = settled(&desk, merchants(1)).await;
    let first = take(&desk, terms(&job, false), 9).await.payouts.remove(0);
    record(&desk, &first, back()).await;
    let seen = view(&desk, &first.idempotency_key).await;
    assert_eq!(
        (seen.state, seen.first_sent_at, seen.key_valid_until, seen.attempts),
        (InstructionState::Pending, None, None, 1)
    );
    let again = take(&desk, terms(&job, false), 9).await.payouts.remove(0);
    assert_eq!((again.attempt, again.in_doubt), (2, false));
    desk.audit_is_clean().await;
}

async fn past_the_validity_of_its_key_nothing_in_doubt_is_sent<D: Ground>() {
    let desk = Desk::<D>::new().await;
    let (job, _) = settled(&desk, merchants(1)).await;
    let first = take(&desk, terms(&job, true), 9).await.payouts.remove(0);
    record(&desk, &first, unknown(Some(Duration::ZERO))).await;
    // Twice the time-out before the end is the end.
    let end = D::words("clock_timestamp() + interval '19 seconds'", "(select now + 19000000 from clock)");
    let end = format!("update bursar.instruction set key_valid_until = {end}");
    desk.database.broken_by(&end).await;
    let taken = take(&desk, terms(&job, true), 9).await;
    assert_eq!((taken.payouts, taken.held), (vec![], 1));
    assert_eq!(state(&desk, &first).await, (InstructionState::Held, Some("unknown".to_owned()), true));
    desk.audit_is_clean().await;
}

async fn an_unknown_outcome_of_a_receiver_that_is_not_idempotent_is_for_a_person_at_once<D: Ground>() {
    let mut desk = Desk::<D>::new().await;
    let (job, run) = settled(&desk, merchants(2)).await;
    let taken = take(&desk, terms(&job, false), 9).await.payouts;
    record(&desk, &taken[0], unknown(None)).await;
    assert_eq!(state(&desk, &taken[0]).await, (InstructionState::Held, Some("unknown".to_owned()), true));
    // The other one's leader dies.
    desk.succeed().await;
    assert_eq!(mine(desk.tenure.recover().await).calls_unknown, 1);
    assert_eq!(state(&desk, &taken[1]).await, (InstructionState::Held, Some("unknown".to_owned()), true));
    assert_eq!(desk.unit(&run, "EUR:m1").await.state.as_str(), "settled", "a held payout sets no unit aside");
    assert_eq!(take(&desk, terms(&job, true), 9).await.payouts, [], "nor does a later definition make it idempotent");
    desk.audit_is_clean().await;
}

async fn an_edit_makes_no_doubt_idempotent_and_no_doubt_moves_to_another_receiver<D: Ground>() {
    let mut desk = Desk::<D>::new().await;
    let (job, _) = settled(&desk, merchants(1)).await;
    let first = take(&desk, terms(&job, true), 9).await.payouts.remove(0);
    desk.succeed().await;
    assert_eq!(mine(desk.tenure.recover().await).calls_unknown, 1);
    assert_eq!(state(&desk, &first).await, (InstructionState::Unknown, None, true));
    let elsewhere = PayoutTake { origin: "https://other.test".to_owned(), ..order(terms(&job, true), 9) };
    let taken = mine(desk.tenure.take_payouts(&elsewhere).await);
    assert_eq!((taken.payouts, taken.held), (vec![], 1));
    desk.audit_is_clean().await;
}

async fn a_doubt_is_asked_for_where_it_can_be_and_never_sent_again_to_a_receiver_that_is_not_idempotent<D: Ground>() {
    let desk = Desk::<D>::new().await;
    let (job, _) = settled(&desk, merchants(1)).await;
    let asks = |idempotent| PayoutTerms { looks_up: true, ..terms(&job, idempotent) };
    let first = take(&desk, asks(false), 9).await.payouts.remove(0);
    record(&desk, &first, unknown(Some(Duration::ZERO))).await;
    let second = take(&desk, asks(false), 9).await.payouts.remove(0);
    assert_eq!(second.errand, Errand::Ask { last: false });
    assert_eq!(state(&desk, &second).await.0, InstructionState::Unknown, "it is not on the wire");
    assert_eq!(take(&desk, asks(false), 9).await.payouts, [], "nor asked for twice at a time");
    record(&desk, &second, unknown(Some(Duration::ZERO))).await;
    let now = D::words("clock_timestamp()", "(select now from clock)");
    desk.database.broken_by(&format!("update bursar.instruction set key_valid_until = {now}")).await;
    let last = take(&desk, asks(false), 9).await.payouts.remove(0);
    assert_eq!(last.errand, Errand::Ask { last: true });
    record(&desk, &last, paid()).await;
    assert_eq!(state(&desk, &last).await, (InstructionState::Paid, None, true));
    desk.audit_is_clean().await;
}

async fn a_take_without_an_answer_is_put_back_and_what_is_in_hand_is_not<D: Ground>() {
    let desk = Desk::<D>::new().await;
    let (job, _) = settled(&desk, merchants(3)).await;
    let kept = take(&desk, terms(&job, false), 1).await.payouts.remove(0);
    let lost = take(&desk, terms(&job, false), 9).await.payouts;
    let in_hand = [(kept.instruction, kept.attempt)];
    assert_eq!(mine(desk.tenure.put_back_payouts(BANK, &in_hand).await), 2);
    assert_eq!(mine(desk.tenure.put_back_payouts(BANK, &in_hand).await), 0);
    for payout in &lost {
        assert_eq!(state(&desk, payout).await, (InstructionState::Pending, None, false));
        assert_eq!(record(&desk, payout, paid()).await.states, [], "it is on the wire no more");
    }
    assert_eq!(take(&desk, terms(&job, false), 9).await.payouts.len(), 2);
    assert_eq!(record(&desk, &kept, paid()).await.states.len(), 1);
    desk.audit_is_clean().await;
}

async fn an_amount_above_the_maximum_now_is_held_and_a_mismatch_is_for_a_person<D: Ground>() {
    let desk = Desk::<D>::new().await;
    let (job, _) = settled(&desk, merchants(1)).await;
    let low = PayoutTerms { maximum: [(currency("EUR"), 999)].into(), ..terms(&job, true) };
    assert_eq!(take(&desk, low, 9).await.held, 1);
    let (_, run) =
        (0, desk.store.payouts(&PayoutFilter { limit: 9, ..PayoutFilter::default() }).await.expect("answers"));
    assert_eq!((run[0].state, run[0].reason.as_deref()), (InstructionState::Held, Some("over_limit")));
    desk.database.broken_by("update bursar.instruction set state = 'pending', reason = null").await;
    let payout = take(&desk, terms(&job, true), 9).await.payouts.remove(0);
    record(&desk, &payout, PayoutFate::Mismatch { error: "another amount".to_owned() }).await;
    assert_eq!(state(&desk, &payout).await, (InstructionState::Held, Some("mismatch".to_owned()), true));
    desk.audit_is_clean().await;
}

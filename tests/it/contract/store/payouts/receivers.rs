//! Receivers that stop, durably and for every leader: one payout per wait is tried, or none until an operator resumes them.

use std::time::Duration;

use bursar::store::{
    Heard, PayoutFate, PayoutRecords, PayoutTake, PayoutsTaken, ReceiverAsk, ReceiverView, ReceiverWay,
};

use super::super::bench::{Bench, SOON, actor, currency, election, mine};
use super::{BANK, Till, back, elsewhere, held, mismatch, of, order, paid, records, rejected, unknown};

/// Records that stop their receiver.
fn stopping(reason: &'static str, of: PayoutRecords) -> PayoutRecords {
    PayoutRecords { stop: Some((reason, "answered 401".to_owned())), ..of }
}

/// Records under a limit of two refusals.
fn few(records: PayoutRecords) -> PayoutRecords {
    PayoutRecords { max_refusals: 2, ..records }
}

/// A take that tries one now.
fn now(till: &Till<'_>) -> PayoutTake {
    PayoutTake { probe_now: true, ..order(till.terms(true)) }
}

async fn receivers(bench: &Bench) -> Vec<ReceiverView> {
    bench.store.receivers().await.expect("an answer")
}

/// The one that is on record.
async fn receiver(bench: &Bench) -> ReceiverView {
    let mut found = receivers(bench).await;
    assert_eq!(found.len(), 1, "one receiver: {found:?}");
    found.remove(0)
}

/// Stops the receiver by what came of its first payout.
async fn stopped(till: &Till<'_>) {
    let first = till.take_as(PayoutTake { limit: 1, ..order(till.terms(true)) }).await.payouts.remove(0);
    let told = till.record_all(&stopping("unauthorized", records(vec![of(&first, back())]))).await;
    assert_eq!((told.states.len(), told.needs_resume), (1, false));
}

/// Receivers that are stopped, as metrics tell them: those that are tried again, and those that wait for an operator.
async fn told(bench: &Bench) -> (u64, u64) {
    bench.store.figures(&election()).await.expect("an answer").receivers_stopped
}

#[track_caller]
fn about(found: Duration, hours: u64) {
    let hour = Duration::from_hours(1);
    assert!(found <= hour * u32::try_from(hours).expect("few") && found + hour / 30 > Duration::from_hours(hours));
}

pub async fn a_stopped_receiver_is_tried_with_one_payout_per_wait_and_goes_on_when_it_works(bench: &Bench) {
    let mut till = Till::open(bench, 4).await;
    stopped(&till).await;
    // The next leader finds it stopped.
    till.succeed().await;
    let before = till.picture().await;
    let taken = till.take(till.terms(true)).await;
    about(taken.next_in.expect("one is tried in the end"), 1);
    let stopped = Some("unauthorized".to_owned());
    let nothing = PayoutsTaken { stopped: stopped.clone(), next_in: taken.next_in, ..PayoutsTaken::default() };
    assert_eq!(taken, nothing);
    assert_eq!(till.picture().await, before, "nothing changed");
    let probe = till.take_as(now(&till)).await;
    assert_eq!((probe.payouts.len(), probe.stopped), (1, stopped), "a secret was read anew");
    assert_eq!(till.take(till.terms(true)).await.payouts, [], "one per wait");
    assert!(!till.record_all(&records(vec![of(&probe.payouts[0], paid())])).await.needs_resume);
    assert_eq!(receivers(bench).await, [], "it works");
    let rest = till.take(till.terms(true)).await;
    assert_eq!((rest.payouts.len(), rest.stopped), (3, None));
}

pub async fn a_stop_is_on_record_and_stops_one_receiver_only(bench: &Bench) {
    let till = Till::open(bench, 2).await;
    stopped(&till).await;
    let found = receiver(bench).await;
    assert_eq!((found.origin.as_str(), found.reason.as_deref()), (BANK, Some("unauthorized")));
    assert_eq!((found.detail.as_deref(), found.refusals, found.needs_resume), (Some("answered 401"), 0, false));
    assert_eq!(found.term, Some(1));
    let wait = found.next_probe_at.expect("one is tried") - found.stopped_at.expect("it is stopped");
    assert_eq!(wait.num_minutes(), 60);
    assert_eq!(till.take_as(elsewhere(till.terms(true))).await.payouts.len(), 2);
}

pub async fn the_waits_of_a_stopped_receiver_grow_to_the_longest(bench: &Bench) {
    let till = Till::open(bench, 3).await;
    stopped(&till).await;
    for hours in [1, 2, 3, 3] {
        let probe = till.take_as(now(&till)).await.payouts;
        assert_eq!(probe.len(), 1);
        about(till.take(till.terms(true)).await.next_in.expect("a wait"), hours);
        // A try that proves nothing, or that stops it again, moves neither the wait nor the time of the stop.
        let before = receiver(bench).await;
        till.record_all(&stopping("unreachable", records(vec![of(&probe[0], back())]))).await;
        let after = receiver(bench).await;
        assert_eq!((after.stopped_at, after.next_probe_at), (before.stopped_at, before.next_probe_at));
        assert_eq!(after.reason.as_deref(), Some("unreachable"), "the newest");
    }
    // Once it works, the first wait is the shortest again.
    let probe = till.take_as(now(&till)).await.payouts.remove(0);
    till.record(&probe, paid()).await;
    stopped(&till).await;
    about(till.take(till.terms(true)).await.next_in.expect("a wait"), 1);
    till.take_as(now(&till)).await;
    about(till.take(till.terms(true)).await.next_in.expect("a wait"), 1);
}

pub async fn a_wait_that_is_over_lets_one_be_tried_and_one_that_is_held_uses_up_no_wait(bench: &Bench) {
    let till = Till::open(bench, 3).await;
    let first = till.take_as(PayoutTake { limit: 1, ..order(till.terms(true)) }).await.payouts.remove(0);
    let stop = stopping("unauthorized", records(vec![of(&first, unknown(None))]));
    till.record_all(&PayoutRecords { probe_after: Duration::ZERO, ..stop }).await;
    let mut low = order(till.terms(true));
    low.jobs[0].maximum = [(currency("EUR"), 1)].into();
    let nothing = till.take_as(low).await;
    assert_eq!((nothing.payouts.len(), nothing.held), (0, 1), "one was looked at, and may not leave");
    assert_eq!(till.take(till.terms(true)).await.payouts.len(), 1, "the wait is over");
    about(till.take(till.terms(true)).await.next_in.expect("a wait"), 1);
}

pub async fn only_what_was_recorded_stops_a_receiver(bench: &Bench) {
    let till = Till::open(bench, 1).await;
    let payout = till.take_one(till.terms(true)).await;
    assert_eq!(
        till.record(&payout, paid()).await.map(bursar::domain::instruction::InstructionState::is_final),
        Some(true)
    );
    let late = stopping("unauthorized", records(vec![of(&payout, back())]));
    assert_eq!(till.record_all(&late).await.states, []);
    assert_eq!(receivers(bench).await, []);
}

pub async fn too_many_refusals_in_a_row_stop_a_receiver_until_it_is_resumed(bench: &Bench) {
    let till = Till::open(bench, 6).await;
    let payouts = till.take_as(PayoutTake { limit: 5, ..order(till.terms(true)) }).await.payouts;
    let batch = few(records(vec![of(&payouts[0], rejected()), of(&payouts[1], paid()), of(&payouts[2], rejected())]));
    assert!(!till.record_all(&batch).await.needs_resume, "a payment in between counts");
    assert!(!till.record_all(&batch).await.needs_resume, "what is repeated is counted once");
    let noted = receiver(bench).await;
    assert_eq!((noted.refusals, noted.stopped_at, noted.needs_resume), (1, None, false));
    let last = few(records(vec![of(&payouts[3], rejected())]));
    assert!(till.record_all(&last).await.needs_resume);
    let found = receiver(bench).await;
    assert_eq!((found.refusals, found.needs_resume, found.reason.as_deref()), (2, true, Some("refusals")));
    for order in [order(till.terms(true)), now(&till)] {
        let taken = till.take_as(order).await;
        assert_eq!((taken.payouts, taken.next_in, taken.stopped.as_deref()), (vec![], None, Some("refusals")));
    }
    // Neither another stop nor a payment that was on its way ends it.
    till.record_all(&stopping("unauthorized", few(records(vec![of(&payouts[4], paid())])))).await;
    let found = receiver(bench).await;
    assert_eq!((found.needs_resume, found.reason.as_deref()), (true, Some("refusals")));
    assert!(bench.store.resume_receiver(BANK, "the bank has mended it", &actor()).await.expect("an answer"));
    let before = till.picture().await;
    assert!(!bench.store.resume_receiver(BANK, "again", &actor()).await.expect("an answer"));
    assert!(!bench.store.resume_receiver("https://nobody.test", "?", &actor()).await.expect("an answer"));
    assert_eq!(till.picture().await, before, "nothing changed");
    assert_eq!(receivers(bench).await, []);
    assert_eq!(till.take(till.terms(true)).await.payouts.len(), 1);
    let act = bench.store.history(5).await.expect("an answer").acts.remove(0);
    assert_eq!((act.action.as_str(), act.target.as_str(), act.by.as_str()), ("receivers resume", BANK, "tester@bench"));
    assert_eq!((act.reason.as_deref(), act.term), (Some("the bank has mended it"), None));
}

pub async fn a_resume_ends_a_stop_that_ends_by_itself_and_counts_refusals_anew(bench: &Bench) {
    let till = Till::open(bench, 4).await;
    let payouts = till.take_as(PayoutTake { limit: 2, ..order(till.terms(true)) }).await.payouts;
    till.record_all(&few(records(vec![of(&payouts[0], rejected())]))).await;
    assert!(bench.store.resume_receiver(BANK, "looked into", &actor()).await.expect("an answer"));
    assert!(!till.record_all(&few(records(vec![of(&payouts[1], rejected())]))).await.needs_resume);
    stopped(&till).await;
    assert!(bench.store.resume_receiver(BANK, "mended", &actor()).await.expect("an answer"));
    assert_eq!(till.take(till.terms(true)).await.payouts.len(), 2);
}

pub async fn only_what_was_sent_and_answered_counts_as_refused_or_paid(bench: &Bench) {
    let till = Till::open(bench, 4).await;
    // A look-up says nothing of how the receiver takes requests.
    let payouts = till.take(till.asks(false)).await.payouts;
    till.record(&payouts[0], unknown(SOON)).await;
    let asked = till.take_again(&till.asks(false)).await;
    let refused = till.record_all(&few(records(vec![of(&asked, rejected()), of(&payouts[1], rejected())]))).await;
    assert!(refused.states.len() == 2 && !refused.needs_resume, "{refused:?}");
    assert_eq!(till.shown(&asked).await, held("unknown", true));
    assert_eq!(receiver(bench).await.refusals, 1);
    // These neither break the row nor add to it.
    let neither = PayoutFate::Back { left: true, error: Some("answered 503".to_owned()), again_in: None };
    till.record_all(&few(records(vec![of(&payouts[2], mismatch()), of(&payouts[3], neither)]))).await;
    assert_eq!(receiver(bench).await.refusals, 1);
    let again = till.take_one(till.asks(false)).await;
    assert!(till.record_all(&few(records(vec![of(&again, rejected())]))).await.needs_resume);
}

pub async fn calls_are_kept_from_a_stopped_receiver_and_stop_it_by_the_same_rules(bench: &Bench) {
    let till = Till::open(bench, 1).await;
    let leads = &till.leads;
    let hours = Duration::from_hours;
    let ask = ReceiverAsk { origin: BANK.to_owned(), probe_waits: (hours(1), hours(3)), probe_now: false, tries: true };
    let nothing = || Heard::nothing(BANK.to_owned(), 2, hours(1));
    let way = async |probe_now| mine(leads.receiver_way(&ReceiverAsk { probe_now, ..ask.clone() }).await);
    assert_eq!(way(false).await, ReceiverWay::Open);
    let stop = Heard { stop: Some(("unauthorized", "answered 401".to_owned())), ..nothing() };
    assert!(!mine(leads.heard(&stop).await));
    assert_eq!(receiver(bench).await.reason.as_deref(), Some("unauthorized"));
    assert_eq!(told(bench).await, (1, 0));
    let closed = async || match way(false).await {
        ReceiverWay::Closed { reason, next_in } => (reason, next_in),
        other => panic!("it is stopped: {other:?}"),
    };
    about(closed().await.1.expect("one is tried in the end"), 1);
    assert_eq!(till.take(till.terms(true)).await.payouts, [], "payouts wait as well");
    for wait in [1, 2, 3, 3] {
        let before = receiver(bench).await;
        let only_asks = ReceiverAsk { probe_now: true, tries: false, ..ask.clone() };
        assert_eq!(mine(leads.receiver_way(&only_asks).await), ReceiverWay::Probe("unauthorized".to_owned()));
        assert_eq!(receiver(bench).await, before, "where nothing is due no try is used up");
        assert_eq!(way(true).await, ReceiverWay::Probe("unauthorized".to_owned()));
        about(closed().await.1.expect("a wait"), wait);
    }
    let mut works = nothing();
    works.done();
    assert!(!mine(leads.heard(&works).await));
    assert_eq!((way(false).await, receivers(bench).await), (ReceiverWay::Open, vec![]));
    assert_eq!(told(bench).await, (0, 0));
    // Refusals in a row, also across what calls and payouts are answered.
    let mut refused = nothing();
    refused.refusal();
    assert!(!mine(leads.heard(&refused).await));
    let payout = till.take_one(till.terms(true)).await;
    assert!(till.record_all(&few(records(vec![of(&payout, rejected())]))).await.needs_resume);
    assert_eq!((closed().await, told(bench).await), (("refusals".to_owned(), None), (0, 1)));
    assert_eq!(way(true).await, ReceiverWay::Closed { reason: "refusals".to_owned(), next_in: None });
    assert!(bench.store.resume_receiver(BANK, "mended", &actor()).await.expect("an answer"));
    assert_eq!((way(false).await, told(bench).await), (ReceiverWay::Open, (0, 0)));
}

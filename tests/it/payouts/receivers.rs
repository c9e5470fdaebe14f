//! Receivers that stop, durably and for every leader.

use bursar::store::{PayoutRecords, PayoutTake};

use super::super::desk::{actor, mine};
use super::*;

on_every_store!(
    a_stopped_receiver_is_tried_with_one_payout_per_wait_and_goes_on_when_it_works,
    too_many_refusals_in_a_row_stop_a_receiver_until_it_is_resumed,
);

/// An order whose probes need no waiting.
fn eager(job: &Job) -> PayoutTake {
    PayoutTake { probe_waits: (Duration::ZERO, Duration::ZERO), ..order(terms(job, true), 9) }
}

async fn a_stopped_receiver_is_tried_with_one_payout_per_wait_and_goes_on_when_it_works<D: Ground>() {
    let mut desk = Desk::<D>::new().await;
    let (job, _) = settled(&desk, merchants(4)).await;
    let first = take(&desk, terms(&job, true), 1).await.payouts.remove(0);
    let stop = Some(("unauthorized", "answered 401".to_owned()));
    let stopping = PayoutRecords { stop, ..records(vec![of(&first, back())]) };
    assert!(!mine(desk.tenure.record_payouts(&stopping).await).needs_resume);
    // The next leader finds it stopped.
    desk.succeed().await;
    let taken = take(&desk, terms(&job, true), 9).await;
    assert_eq!((taken.payouts, taken.stopped.as_deref()), (vec![], Some("unauthorized")));
    assert!(taken.next_in.is_some_and(|wait| wait > Duration::from_mins(50)), "{:?}", taken.next_in);
    let now = PayoutTake { probe_now: true, ..order(terms(&job, true), 9) };
    let probe = mine(desk.tenure.take_payouts(&now).await).payouts;
    assert_eq!(probe.len(), 1, "a secret was read anew");
    assert_eq!(take(&desk, terms(&job, true), 9).await.payouts, [], "one per wait");
    record(&desk, &probe[0], paid()).await;
    assert_eq!(desk.store.receivers().await.expect("the store answers"), []);
    assert_eq!(take(&desk, terms(&job, true), 9).await.payouts.len(), 3);
    desk.audit_is_clean().await;
}

async fn too_many_refusals_in_a_row_stop_a_receiver_until_it_is_resumed<D: Ground>() {
    let desk = Desk::<D>::new().await;
    let (job, _) = settled(&desk, merchants(6)).await;
    let payouts = take(&desk, terms(&job, true), 4).await.payouts;
    let few = |records: PayoutRecords| PayoutRecords { max_refusals: 2, ..records };
    let batch = few(records(vec![of(&payouts[0], rejected()), of(&payouts[1], paid()), of(&payouts[2], rejected())]));
    assert!(!mine(desk.tenure.record_payouts(&batch).await).needs_resume, "a payment in between counts");
    assert!(!mine(desk.tenure.record_payouts(&batch).await).needs_resume, "what is repeated is counted once");
    let last = few(records(vec![of(&payouts[3], rejected())]));
    assert!(mine(desk.tenure.record_payouts(&last).await).needs_resume);
    let taken = mine(desk.tenure.take_payouts(&eager(&job)).await);
    assert_eq!((taken.payouts, taken.next_in, taken.stopped.as_deref()), (vec![], None, Some("refusals")));
    let listed = desk.store.receivers().await.expect("the store answers");
    assert_eq!((listed[0].origin.as_str(), listed[0].refusals, listed[0].needs_resume), (BANK, 2, true));
    assert!(desk.store.resume_receiver(BANK, "the bank has mended it", &actor()).await.expect("it answers"));
    assert!(!desk.store.resume_receiver(BANK, "again", &actor()).await.expect("it answers"));
    assert_eq!(take(&desk, terms(&job, true), 9).await.payouts.len(), 2);
    let acts = desk.store.history(5).await.expect("the store answers").acts;
    assert_eq!((acts[0].action.as_str(), acts[0].target.as_str()), ("receivers resume", BANK));
    desk.audit_is_clean().await;
}

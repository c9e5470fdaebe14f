//! All that is kept of one unit, and nothing of any other.

use std::collections::BTreeSet;

use bursar::domain::entry::EntryKind;
use bursar::domain::instruction::InstructionState;
use bursar::store::{CallFate, Errand, PayoutFate, RequestKind, Resolution, UnitHistory, UnitRequest};

use super::bench::{Bench, SOON, actor, call_record, calling, capture, entry, everything, mine};
use super::payouts::{BANK, Till, back, order, paid, unknown};

async fn history(till: &Till<'_>, run: i64, key: &str) -> UnitHistory {
    let found = till.bench.store.unit_history(run, key).await.expect("an answer");
    found.unwrap_or_else(|| panic!("there is the unit {key}"))
}

/// Number, whether it was only asked, term, outcome, detail.
type Try<'a> = (u32, bool, i64, Option<&'a str>, Option<&'a str>);

fn tries(request: &UnitRequest) -> Vec<Try<'_>> {
    let shown = request.tries.iter();
    shown.map(|of| (of.attempt, of.asked, of.term, of.outcome.as_deref(), of.detail.as_deref())).collect()
}

pub async fn each_try_of_a_payout_has_a_row_with_its_term_and_its_outcome(bench: &Bench) {
    let mut till = Till::open(bench, 1).await;
    let shown = async |till: &Till<'_>| history(till, till.run.id, "EUR:m0").await.requests.remove(0);
    assert_eq!(tries(&shown(&till).await), []);
    let first = till.take_one(till.asks(true)).await;
    let on_the_wire = shown(&till).await;
    assert_eq!(tries(&on_the_wire), [(1, false, 1, None, None)]);
    assert_eq!((on_the_wire.tries[0].receiver.as_deref(), on_the_wire.tries[0].ended_at), (Some(BANK), None));
    till.record(&first, back()).await;
    // What a take without an answer left in nobody's hands.
    till.take_one(till.asks(true)).await;
    assert_eq!(mine(till.leads.put_back_payouts(BANK, &[]).await), 1);
    let third = till.take_one(till.asks(true)).await;
    let busy = PayoutFate::Back { left: true, error: Some("answered 503".to_owned()), again_in: None };
    till.record(&third, busy).await;
    till.take_one(till.asks(true)).await;
    till.succeed().await;
    let asked = till.take_again(&till.asks(false)).await;
    assert!(matches!(asked.errand, Errand::Ask { .. }), "{asked:#?}");
    till.record(&asked, paid()).await;
    // Recorded twice, it is there once.
    till.record(&asked, unknown(None)).await;
    let ended = shown(&till).await;
    let lost = "the leader of term 1 ended before an answer was recorded";
    let expected = [
        (1, false, 1, Some("not_sent"), None),
        (2, false, 1, Some("not_sent"), None),
        (3, false, 1, Some("undone"), Some("answered 503")),
        (4, false, 1, Some("unknown"), Some(lost)),
        (5, true, 2, Some("paid"), None),
    ];
    assert_eq!(tries(&ended), expected);
    assert_eq!(ended.attempts, 5);
    assert!(ended.tries.iter().all(|made| made.ended_at.is_some_and(|at| at >= made.began_at)), "{ended:#?}");
    let nothing = till.take_as(order(till.asks(false))).await;
    assert!(nothing.payouts.is_empty(), "{nothing:#?}");
}

pub async fn each_try_of_a_call_has_a_row_too(bench: &Bench) {
    let leads = bench.lead(1).await;
    let run = bench.planned(leads.as_ref(), calling("calls", true), &["a"]).await;
    let fates = [CallFate::NotSent, CallFate::Failed { error: "exit 75".to_owned(), again_in: SOON }, CallFate::Done];
    for fate in fates {
        let call = loop {
            match mine(leads.take_calls(&run, 10).await).pop() {
                Some(call) => break call,
                None => tokio::task::yield_now().await,
            }
        };
        mine(leads.record_calls(run.id, &[call_record(call.instruction, call.attempt, fate)]).await);
    }
    let shown = bench.store.unit_history(run.id, "a").await.expect("an answer").expect("there is the unit");
    let expected = [
        (1, false, 1, Some("not_sent"), None),
        (2, false, 1, Some("failed"), Some("exit 75")),
        (3, false, 1, Some("done"), None),
    ];
    assert_eq!(tries(&shown.requests[0]), expected);
}

pub async fn a_unit_shows_what_it_bound_what_was_posted_asked_and_done_about_it(bench: &Bench) {
    let entries = vec![
        entry("a1", "acme", "JPY", EntryKind::Capture, "10000", "150"),
        capture("a2", "acme", "JPY", "1050"),
        capture("a3", "other", "JPY", "7"),
    ];
    let till = Till::of(bench, everything(), entries).await;
    let payout = till.take(till.terms(false)).await.payouts;
    let mut of_acme = None;
    for payout in payout {
        till.record(&payout, unknown(None)).await;
        if till.view(&payout.idempotency_key).await.merchant == "acme" {
            of_acme = Some(payout.idempotency_key);
        }
    }
    let key = of_acme.expect("one is for acme");
    let word = Resolution::Returned("no".to_owned());
    bench.store.resolve_payout(&key, &word, "tried", &actor()).await.expect("an answer");
    let word = Resolution::Paid("R-2".to_owned());
    bench.store.resolve_payout(&key, &word, "the bank's letter", &actor()).await.expect("an answer");
    for keys in [BTreeSet::from(["JPY:acme".to_owned()]), BTreeSet::from(["JPY:other".to_owned()])] {
        let kind = RequestKind::RetryUnits { run: till.run.id, keys };
        bench.store.request(&kind, &actor(), Some("again")).await.expect("filed");
    }
    let shown = history(&till, till.run.id, "JPY:acme").await;
    assert_eq!(shown.unit, bench.unit(till.run.id, "JPY:acme").await);
    let [bound] = shown.entries.as_slice() else { panic!("one source: {shown:#?}") };
    let bound = (bound.source.as_str(), bound.carries, bound.entries, bound.amount.as_str(), bound.fee.as_str());
    assert_eq!(bound, ("adyen", false, 2, "11050", "150"));
    let posted: Vec<_> = shown
        .postings
        .iter()
        .map(|line| (line.journal.as_str(), line.debit.as_str(), line.credit.as_str(), line.amount.as_str()))
        .collect();
    let expected = [
        ("settle", "source_clearing:adyen", "payable:acme", "11050"),
        ("settle", "payable:acme", "fees", "150"),
        ("settle", "payable:acme", "payout_clearing", "10900"),
        ("paid", "payout_clearing", "bank", "10900"),
    ];
    assert_eq!(posted, expected);
    let [request] = shown.requests.as_slice() else { panic!("one payout: {shown:#?}") };
    assert_eq!((&request.key, request.state, request.attempts), (&key, InstructionState::Paid, 1));
    assert_eq!((request.in_doubt, request.reference.as_deref()), (true, Some("R-2")));
    assert!(request.first_sent_at.is_some() && request.last_error.as_deref() == Some("no answer"));
    assert_eq!(tries(request), [(1, false, 1, Some("unknown"), Some("no answer"))]);
    let acts: Vec<_> = shown.acts.iter().map(|act| (act.action.as_str(), act.reason.as_deref())).collect();
    assert_eq!(acts, [("payouts resolve", Some("the bank's letter")), ("units retry", Some("again"))]);
    let batch = shown.batch.expect("it has ended");
    assert_eq!((batch.term, shown.generation), (1, 0));
    assert_eq!(bench.store.unit_history(till.run.id, "JPY:none").await, Ok(None));
}

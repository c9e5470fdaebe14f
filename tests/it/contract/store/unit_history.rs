//! All that is kept of one unit, and nothing of any other.

use std::collections::BTreeSet;

use bursar::domain::entry::EntryKind;
use bursar::domain::instruction::InstructionState;
use bursar::store::{RequestKind, Resolution, UnitHistory};

use super::bench::{Bench, actor, capture, entry, everything};
use super::payouts::{Till, unknown};

async fn history(till: &Till<'_>, run: i64, key: &str) -> UnitHistory {
    let found = till.bench.store.unit_history(run, key).await.expect("an answer");
    found.unwrap_or_else(|| panic!("there is the unit {key}"))
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
    let acts: Vec<_> = shown.acts.iter().map(|act| (act.action.as_str(), act.reason.as_deref())).collect();
    assert_eq!(acts, [("payouts resolve", Some("the bank's letter")), ("units retry", Some("again"))]);
    let batch = shown.batch.expect("it has ended");
    assert_eq!((batch.term, shown.generation), (1, 0));
    assert_eq!(bench.store.unit_history(till.run.id, "JPY:none").await, Ok(None));
}

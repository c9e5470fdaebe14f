//! The report of a run: entries, units, journal, instructions and carries agree to the last minor unit, whatever became of the
//! payouts since.

use bursar::domain::JobName;
use bursar::domain::entry::EntryKind;
use bursar::domain::instruction::InstructionState;
use bursar::domain::job::LedgerDefinition;
use bursar::store::{OpenRun, Resolution, RollForward, RunReport};
use chrono::TimeDelta;

use super::bench::{Bench, actor, capture, currency, entry, everything};
use super::payouts::{Till, paid, rejected, unknown};

async fn report(bench: &Bench, run: &OpenRun) -> RunReport {
    let tick = run.tick - TimeDelta::nanoseconds(i64::from(run.tick.timestamp_subsec_nanos()));
    let reports = bench.store.report(&run.definition.name, tick).await.expect("an answer");
    let mut of_run: Vec<RunReport> = reports.into_iter().filter(|report| report.run.id == run.id).collect();
    assert_eq!(of_run.len(), 1, "the run is there once");
    let report = of_run.remove(0);
    assert!(report.is_balanced(), "{:#?}", report.currencies);
    report
}

/// Brought forward, imported, fees, paid, in flight, carried forward.
fn figures<'a>(report: &'a RunReport, code: &str) -> [&'a str; 6] {
    let of: Vec<&RollForward> = report.currencies.iter().filter(|sums| sums.currency == code).collect();
    let [sums] = of.as_slice() else { panic!("one line of {code}: {report:#?}") };
    [&sums.brought_forward, &sums.imported, &sums.fees, &sums.paid, &sums.in_flight, &sums.carried_forward]
        .map(String::as_str)
}

pub async fn lines_unit_journal_instruction_and_report_agree_in_every_currency(bench: &Bench) {
    let entries = vec![
        capture("a1", "acme", "JPY", "10000"),
        entry("a2", "acme", "JPY", EntryKind::Capture, "1050", "150"),
        entry("a3", "acme", "KWD", EntryKind::Capture, "18.650", "0.050"),
        entry("a4", "acme", "EUR", EntryKind::Refund, "-0.03", "-0.01"),
        capture("a5", "acme", "CLF", "1.0001"),
    ];
    let till = Till::of(bench, everything(), entries).await;
    let fresh = report(bench, &till.run).await;
    assert_eq!(figures(&fresh, "JPY"), ["0", "11050", "150", "0", "10900", "0"]);
    assert_eq!(figures(&fresh, "KWD"), ["0.000", "18.650", "0.050", "0.000", "18.600", "0.000"]);
    assert_eq!(figures(&fresh, "EUR"), ["0.00", "-0.03", "-0.01", "0.00", "0.00", "-0.02"]);
    assert_eq!(figures(&fresh, "CLF"), ["0.0000", "1.0001", "0.0000", "0.0000", "1.0001", "0.0000"]);
    for (payout, view) in fresh.payouts.iter().zip(till.payouts().await) {
        assert_eq!((&payout.key, &payout.amount, &payout.merchant), (&view.key, &view.amount, &view.merchant));
        assert_eq!((payout.value_date, payout.state), (view.value_date, InstructionState::Pending));
    }
    for payout in till.take(till.terms(true)).await.payouts {
        till.record(&payout, paid()).await;
    }
    let after = report(bench, &till.run).await;
    assert_eq!(figures(&after, "JPY"), ["0", "11050", "150", "10900", "0", "0"]);
    assert_eq!(figures(&after, "KWD"), ["0.000", "18.650", "0.050", "18.600", "0.000", "0.000"]);
    assert!(after.payouts.iter().all(|payout| payout.reference.as_deref() == Some("R-1")));
    assert_eq!(after.payouts_left_out, 0);
}

pub async fn what_is_rejected_or_returned_is_carried_by_its_run_and_brought_into_the_next(bench: &Bench) {
    let least = LedgerDefinition { minimum_payout: [(currency("JPY"), 100)].into(), ..everything() };
    let entries = vec![
        capture("a1", "small", "JPY", "99"),
        capture("a2", "no", "JPY", "1000"),
        capture("a3", "back", "JPY", "2000"),
        capture("a4", "lost", "JPY", "4000"),
    ];
    let till = Till::of(bench, least, entries).await;
    let taken = till.take(till.terms(false)).await.payouts;
    let keys: Vec<&str> = taken.iter().map(|payout| payout.idempotency_key.as_str()).collect();
    for payout in &taken {
        let fate = match till.view(&payout.idempotency_key).await.merchant.as_str() {
            "no" => rejected(),
            "back" => paid(),
            _ => unknown(None),
        };
        till.record(payout, fate).await;
    }
    let before = report(bench, &till.run).await;
    assert_eq!(figures(&before, "JPY"), ["0", "7099", "0", "2000", "4000", "1099"]);
    let mut returned = None;
    for key in keys {
        if till.view(key).await.merchant == "back" {
            returned = Some(key);
        }
    }
    let word = Resolution::Returned("B-4".to_owned());
    let key = returned.expect("it was paid");
    bench.store.resolve_payout(key, &word, "the bank's letter", &actor()).await.expect("an answer");
    let first = report(bench, &till.run).await;
    assert_eq!(figures(&first, "JPY"), ["0", "7099", "0", "0", "4000", "3099"]);
    let sums = &first.currencies[0];
    let parts = [&sums.carried, &sums.rejected, &sums.returned, &sums.still_open].map(String::as_str);
    assert_eq!(parts, ["99", "1000", "2000", "3099"]);
    // What was too small waits for more; the next run takes the rest, and says where it came from.
    bench.import("adyen", vec![entry("b1", "no", "JPY", EntryKind::Capture, "10", "3")]).await;
    let next = bench.settled(till.leads.as_ref(), &till.job).await;
    let second = report(bench, &next).await;
    assert_eq!(figures(&second, "JPY"), ["3000", "10", "3", "0", "3007", "0"]);
    let first = report(bench, &till.run).await;
    assert_eq!(figures(&first, "JPY"), ["0", "7099", "0", "0", "4000", "3099"], "what is past does not change");
    assert_eq!(first.currencies[0].still_open, "99");
}

pub async fn what_is_reverted_stays_in_the_run_that_settled_it_and_is_taken_off_the_next(bench: &Bench) {
    let till = Till::open(bench, 1).await;
    let import = bench.import("adyen", vec![entry("a1", "acme", "KWD", EntryKind::Capture, "5.000", "0.125")]).await;
    let run = bench.settled(till.leads.as_ref(), &till.job).await;
    bench.store.revert_import(import.id, "a wrong file", &actor()).await.expect("an answer");
    bench.import("adyen", vec![capture("b1", "acme", "KWD", "1.000")]).await;
    let next = bench.settled(till.leads.as_ref(), &till.job).await;
    assert_eq!(figures(&report(bench, &run).await, "KWD"), ["0.000", "5.000", "0.125", "0.000", "4.875", "0.000"]);
    assert_eq!(figures(&report(bench, &next).await, "KWD"), ["0.000", "-4.000", "-0.125", "0.000", "0.000", "-3.875"]);
}

pub async fn a_tick_without_a_run_has_no_report_and_one_without_money_an_empty_one(bench: &Bench) {
    let till = Till::open(bench, 1).await;
    let run = bench.settled(till.leads.as_ref(), &till.job).await;
    let empty = report(bench, &run).await;
    assert!(empty.currencies.is_empty() && empty.payouts.is_empty());
    assert_eq!((empty.run.id, empty.cutoff_at), (run.id, run.cutoff_at));
    let none = bench.store.report(&till.job.definition.name, till.run.tick + TimeDelta::hours(1)).await;
    assert_eq!(none.expect("an answer"), Vec::new());
    let other = JobName::new("other").expect("a name");
    assert_eq!(bench.store.report(&other, till.run.tick).await.expect("an answer"), Vec::new());
}

//! The audit is audited: a store that is whole is clean, one broken by hand in a guarded way is reported by the check that
//! guards it. The same on every store.

mod breaks;

use std::time::Duration;

use bursar::domain::entry::EntryKind;
use bursar::domain::job::LedgerDefinition;
use bursar::store::{AuditCheck, AuditReport};

use super::desk::{Desk, Ground, actor, bulk, capture, currency, election, entry, everything, on_every_store};

on_every_store!(
    a_store_in_which_everything_happened_once_is_clean_and_every_guarantee_is_looked_at,
    a_store_broken_by_hand_is_reported_by_the_check_that_guards_it,
    what_is_taken_back_by_hand_and_imported_again_is_noticed_although_all_sums_agree,
    what_is_written_while_halted_is_reported_and_what_is_written_before_and_after_is_not,
    what_cannot_be_compared_is_said_not_counted,
    sums_that_no_amount_could_hold_are_compared_and_shown,
);

/// A store in which everything has happened once: two terms, settled, carried, empty, held, reverted, open.
async fn whole<D: Ground>() -> D {
    D::like("audited", async |migrated| {
        let mut desk = Desk::on(migrated.clone()).await;
        let limits = LedgerDefinition { maximum_payout: [(currency("EUR"), 5000)].into(), ..everything() };
        let job = desk.job("daily", limits).await;
        let wrong = desk.import("stripe", vec![capture("w1", "acme", "EUR", "3.00")]).await;
        desk.import(
            "adyen",
            vec![
                entry("a1", "acme", "EUR", EntryKind::Capture, "10.00", "0.30"),
                capture("a2", "rich", "EUR", "100.00"),
                entry("a3", "poor", "EUR", EntryKind::Refund, "-4.00", ""),
                entry("a4", "zero", "EUR", EntryKind::Capture, "1.00", "1.00"),
                capture("a5", "acme", "JPY", "700"),
            ],
        )
        .await;
        let (one, other) = (desk.planned(&job).await, desk.planned(&job).await);
        desk.settle(&one).await;
        desk.settle(&other).await;
        desk.store.revert_import(wrong.id, "wrong", &actor()).await.expect("it answers");
        desk.succeed().await;
        desk.settled(&job).await;
        desk.import("adyen", vec![capture("a6", "acme", "EUR", "0.50"), capture("a7", "late", "EUR", "2.00")]).await;
        desk.planned(&job).await;
        desk.tenure.end(Duration::from_secs(5)).await;
        desk.store.close().await;
    })
    .await
}

#[expect(clippy::print_stderr, reason = "a test says what it waited for")]
async fn audit<D: Ground>(database: &D) -> AuditReport {
    let store = database.store();
    for _ in 0..5 {
        match store.audit().await {
            // A new session may take longer than its bound on a machine that is busy with the other tests.
            Err(error) if error.is_passing() => eprintln!("{error}"),
            other => return other.expect("the store answers"),
        }
    }
    panic!("the store does not answer")
}

fn found<'a>(report: &'a AuditReport, name: &str) -> &'a AuditCheck {
    report.checks.iter().find(|check| check.name == name).unwrap_or_else(|| panic!("there is a check {name}"))
}

async fn a_store_in_which_everything_happened_once_is_clean_and_every_guarantee_is_looked_at<D: Ground>() {
    let report = audit(&whole::<D>().await).await;
    let broken: Vec<_> = report.checks.iter().filter(|check| check.violations > 0).collect();
    assert!(report.is_clean(), "{broken:#?}");
    for guarantee in ["S1", "S2", "S3", "S4", "S5", "S6", "money"] {
        assert!(report.checks.iter().any(|check| check.guarantee == guarantee), "{guarantee}");
    }
    assert!(report.checks.iter().all(|check| check.not_proven.is_none()), "{report:#?}");
    let open: Vec<_> = report.open.iter().map(|(code, sum)| (code.as_str(), sum.as_str())).collect();
    // The late entries, and what the revert left to carry: 2.50 - 3.00 - 4.00 carried.
    assert_eq!(open, [("EUR", "-4.50")]);
}

async fn a_store_broken_by_hand_is_reported_by_the_check_that_guards_it<D: Ground>() {
    for (name, statements) in breaks::of::<D>() {
        let database = whole::<D>().await;
        let touched = database.broken_by(statements).await;
        assert!(touched > 0, "{statements} breaks nothing");
        let report = audit(&database).await;
        let check = found(&report, name);
        assert!(check.violations > 0, "{name} does not see: {statements}");
        assert!(!check.examples.is_empty() && check.examples.len() <= 20, "{check:?}");
    }
    let broken: std::collections::BTreeSet<&str> = breaks::of::<D>().iter().map(|(name, _)| *name).collect();
    let report = audit(&whole::<D>().await).await;
    let unbroken: Vec<_> =
        report.checks.iter().map(|check| check.name.as_str()).filter(|name| !broken.contains(name)).collect();
    assert_eq!(unbroken, ["halted_does_nothing"], "each check has been seen to fail");
}

async fn what_is_taken_back_by_hand_and_imported_again_is_noticed_although_all_sums_agree<D: Ground>() {
    let now = D::words("now()", "(select now from clock)");
    for (by_hand, again) in [
        (format!("reverted_at = {now} where external_id = 'a2'"), capture("a2", "rich", "EUR", "100.00")),
        (format!("withdrawn_at = {now} where external_id = 'a7'"), capture("a7", "late", "EUR", "2.00")),
    ] {
        let database = whole::<D>().await;
        assert_eq!(database.broken_by(&format!("update bursar.entry set {by_hand}")).await, 1);
        let desk = Desk::on(database).await;
        let job = desk.job("other", everything()).await;
        desk.import("adyen", vec![again]).await;
        desk.settled(&job).await;
        let report = audit(&desk.database).await;
        let noticed: Vec<_> =
            report.checks.iter().filter(|check| check.violations > 0).map(|check| check.name.as_str()).collect();
        assert_eq!(noticed, ["reverts_are_whole"], "{by_hand}");
        let check = found(&report, "reverts_are_whole");
        assert!(check.violations == 2 || by_hand.starts_with("withdrawn"), "the mark, and no opposite: {check:?}");
        desk.store.close().await;
    }
}

async fn what_is_written_while_halted_is_reported_and_what_is_written_before_and_after_is_not<D: Ground>() {
    let desk = Desk::on(whole::<D>().await).await;
    let job = desk.job("other", everything()).await;
    desk.settled(&job).await;
    let (election, by) = (election(), actor());
    let halt = || desk.store.halt(&election, "drill", &by);
    halt().await.expect("it is halted");
    halt().await.expect("it is halted already");
    desk.store.resume(&election, "drill over", &actor()).await.expect("it is resumed");
    desk.settled(&job).await;
    desk.audit_is_clean().await;
    halt().await.expect("it is halted");
    let before: i64 = desk.database.value("select max(id) from bursar.run").await;
    desk.database.broken_by(D::words(breaks::RUN_ON_POSTGRES, breaks::RUN_ON_SQLITE)).await;
    let run: i64 = desk.database.value("select max(id) from bursar.run").await;
    assert!(run > before);
    let check = found(&audit(&desk.database).await, "halted_does_nothing").clone();
    assert_eq!(check.violations, 1, "{check:?}");
    assert!(check.examples[0].contains(&format!("run {run} ")), "{check:?}");
    desk.database.broken_by(D::words(breaks::BATCHES_ON_POSTGRES, breaks::BATCHES_ON_SQLITE)).await;
    desk.store.resume(&election, "drill over", &actor()).await.expect("it is resumed");
    let check = found(&audit(&desk.database).await, "halted_does_nothing").clone();
    assert_eq!(check.violations, 2, "setting aside is recording: {check:?}");
    desk.database.broken_by(D::words(breaks::SENT_ON_POSTGRES, breaks::SENT_ON_SQLITE)).await;
    let check = found(&audit(&desk.database).await, "halted_does_nothing").clone();
    assert_eq!(check.violations, 3, "a call that left while halted: {check:?}");
}

async fn what_cannot_be_compared_is_said_not_counted<D: Ground>() {
    let database = whole::<D>().await;
    database.broken_by("update bursar.term_history set timeline = timeline + 1 where term = 2").await;
    database.broken_by("update bursar.job set removed_at = created_at").await;
    let report = audit(&database).await;
    assert!(report.is_clean());
    let told = found(&report, "no_stale_write").not_proven.clone().expect("it is said");
    assert!(told.contains("settlement term 1"), "{told}");
    let told = found(&report, "carry_equals_open_carries").not_proven.clone().expect("it is said");
    assert!(told.contains("jobs that are gone"), "{told}");
    database.broken_by("update bursar.job set removed_at = null").await;
    assert_eq!(found(&audit(&database).await, "carry_equals_open_carries").not_proven, None);
    database.broken_by("update bursar.job set definition = '{\"handler\":{\"command\":{}}}'").await;
    let told = found(&audit(&database).await, "carry_equals_open_carries").not_proven.clone().expect("it is said");
    assert!(told.contains("settle no ledger any more (daily)"), "{told}");
}

async fn sums_that_no_amount_could_hold_are_compared_and_shown<D: Ground>() {
    let desk = Desk::<D>::new().await;
    let job = desk.job("daily", everything()).await;
    let huge = "92233720368547758.07";
    let entries = (0..3).flat_map(|n| {
        let merchant = format!("m{n}");
        [capture(&format!("h{n}"), &merchant, "EUR", huge), capture(&format!("o{n}"), "open", "EUR", huge)]
    });
    desk.import("adyen", entries.collect()).await;
    let report = audit(&desk.database).await;
    assert!(report.is_clean(), "{report:#?}");
    assert_eq!(report.open["EUR"], "553402322211286548.42", "six times the largest amount");
    let run = desk.planned(&job).await;
    desk.settle(&run).await;
    let view = desk.store.run_by_id(run.id).await.expect("it answers").expect("there is the run");
    assert_eq!(view.paid_out["EUR"], "276701161105643274.21");
    desk.audit_is_clean().await;
    desk.database.broken_by("delete from bursar.entry where external_id = 'o1'").await;
    desk.database.broken_by("delete from bursar.instruction where merchant = 'm1'").await;
    let report = audit(&desk.database).await;
    let check = found(&report, "payout_clearing_equals_unfinal");
    assert_eq!(
        check.examples,
        ["payout_clearing has 27670116110564327421 EUR, payouts that are not final 18446744073709551614"]
    );
    let check = found(&report, "merchants_add_up");
    assert_eq!(check.violations, 1, "what is gone on both sides adds up: {check:?}");
}

mod timed {
    use super::*;

    on_every_store!(a_hundred_thousand_entries_are_audited_in_seconds);

    #[expect(clippy::print_stdout, reason = "the figures are what it is run for")]
    async fn a_hundred_thousand_entries_are_audited_in_seconds<D: Ground>() {
        let desk = Desk::<D>::new().await;
        let job = desk.job("daily", everything()).await;
        let began = bursar::clock::boottime();
        desk.import("adyen", bulk("b", 10_000, 10)).await;
        println!("100,000 entries imported in {:?}", bursar::clock::boottime().since(began));
        let run = desk.planned(&job).await;
        let began = bursar::clock::boottime();
        let counts = desk.settle_in(&run, 2000).await;
        let settled = bursar::clock::boottime();
        desk.audit_is_clean().await;
        let audited = bursar::clock::boottime();
        println!(
            "10,000 units of 100,000 entries settled in {:?}, audited in {:?}",
            settled.since(began),
            audited.since(settled)
        );
        assert_eq!(counts.settled, 10_000);
        assert!(audited.since(settled) < Duration::from_secs(30));
    }
}

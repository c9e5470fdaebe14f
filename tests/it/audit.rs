//! The audit is audited: a store that is whole is clean, one broken by hand in a guarded way is reported by the check that
//! guards it.

use std::time::Duration;

use bursar::domain::entry::EntryKind;
use bursar::domain::job::LedgerDefinition;
use bursar::store::{AuditCheck, AuditReport, Scope, Store};

use super::desk::{Desk, actor, bulk, capture, currency, entry, everything, store_on};
use super::support::{Database, Postgres};

/// A store in which everything has happened once: two terms, settled, carried, empty, held, reverted, open.
async fn whole() -> Database {
    Postgres::shared()
        .database_from("audited", async |empty| {
            store_on(empty).migrate().await.expect("it is migrated");
            let mut desk = Desk::on(empty.clone()).await;
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
            desk.import("adyen", vec![capture("a6", "acme", "EUR", "0.50"), capture("a7", "late", "EUR", "2.00")])
                .await;
            desk.planned(&job).await;
            desk.tenure.end(Duration::from_secs(5)).await;
            desk.store.close().await;
        })
        .await
}

#[expect(clippy::print_stderr, reason = "a test says what it waited for")]
async fn audit(database: &Database) -> AuditReport {
    let store = store_on(database);
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

/// Statements that break a store, with the check that must report it. Triggers and keys are switched off for them.
const BREAKS: &[(&str, &str)] = &[
    (
        "one_tenure_per_term",
        "insert into bursar.term_history (election, term, tenure_id, replica, host, version, system_identifier, timeline)
         select election, term, gen_random_uuid(), 'x', 'x', 'x', system_identifier, timeline from bursar.term_history where term = 1",
    ),
    ("fence_is_highest", "update bursar.fence set term = 1"),
    ("fence_is_highest", "update bursar.fence set tenure_id = gen_random_uuid()"),
    ("fence_is_highest", "delete from bursar.fence"),
    (
        "no_stale_write",
        "insert into bursar.batch (run_id, election, term, units, settled, carried, empty, set_aside, instructions)
         select run_id, election, 1, 0, 0, 0, 0, 0, 0 from bursar.batch limit 1",
    ),
    ("no_stale_write", "update bursar.instruction set xact = pg_current_xact_id() where term = 1"),
    ("no_stale_write", "update bursar.journal set xact = pg_current_xact_id() where term = 1"),
    ("no_stale_write", "update bursar.unit set xact = pg_current_xact_id() where term = 1"),
    ("no_stale_write", "update bursar.run set xact = pg_current_xact_id() where opened_term = 1"),
    ("settled_has_its_effect", "delete from bursar.instruction where merchant = 'rich'"),
    ("settled_has_its_effect", "update bursar.instruction set amount = amount + 1 where merchant = 'rich'"),
    ("settled_has_its_effect", "update bursar.instruction set currency = 'USD' where merchant = 'rich'"),
    ("settled_has_its_effect", "delete from bursar.journal"),
    ("settled_has_its_effect", "update bursar.unit set state = 'settled', net = 0, ended_at = now() where state = 'pending'"),
    ("unended_has_no_effect", "update bursar.unit set state = 'pending', ended_at = null where merchant = 'rich'"),
    ("unended_has_no_effect", "update bursar.unit set state = 'set_aside' where merchant = 'rich' and state = 'settled'"),
    ("carried_has_its_carry", "delete from bursar.entry where kind = 'carry'"),
    ("carried_has_its_carry", "update bursar.entry set amount = amount - 1 where kind = 'carry'"),
    ("carried_has_its_carry", "update bursar.unit set state = 'empty' where state = 'carried'"),
    (
        "entries_have_one_home",
        "update bursar.entry set unit_id = (select max(id) from bursar.unit where state = 'pending' and merchant = 'late') where merchant = 'late'",
    ),
    (
        "entries_have_one_home",
        "update bursar.entry set unit_id = (select max(id) from bursar.unit where state = 'settled' and merchant = 'rich') where merchant = 'late'",
    ),
    ("entries_have_one_home", "update bursar.entry set unit_id = 999999 where merchant = 'late'"),
    (
        "entries_have_one_home",
        "drop index bursar.entry_one_per_source_and_id;
         insert into bursar.entry (source, external_id, merchant, currency, kind, amount, fee, occurred_at, available_at, import_id)
         select source, external_id, merchant, currency, kind, amount, fee, occurred_at, available_at, import_id
           from bursar.entry where merchant = 'late'",
    ),
    ("nets_follow_from_entries", "update bursar.entry set amount = amount + 1 where merchant = 'rich'"),
    ("nets_follow_from_entries", "update bursar.entry set fee = fee + 1 where merchant = 'rich'"),
    ("nets_follow_from_entries", "update bursar.entry set unit_id = null where merchant = 'rich'"),
    ("nets_follow_from_entries", "update bursar.unit set net = net + 1 where merchant = 'rich'"),
    ("nets_follow_from_entries", "update bursar.posting set amount = amount + 1 where debit_owner = 'rich' or credit_owner = 'rich'"),
    ("nets_follow_from_entries", "update bursar.posting set debit_owner = 'stripe' where debit_kind = 'source_clearing' and credit_owner = 'rich'"),
    (
        "keys_are_unique",
        "alter table bursar.instruction drop constraint instruction_key_is_unique,
           drop constraint instruction_one_per_unit_and_kind;
         insert into bursar.instruction (unit_id, run_id, job_id, election, kind, idempotency_key, merchant, currency, amount, body, term)
         select unit_id, run_id, job_id, election, kind, idempotency_key, merchant, currency, amount, body, term
           from bursar.instruction where merchant = 'rich'",
    ),
    ("keys_are_derived", "update bursar.instruction set idempotency_key = 'b' || repeat('a', 26) where merchant = 'rich'"),
    ("keys_are_derived", "update bursar.instruction set body = convert_to('{}', 'UTF8') where merchant = 'rich'"),
    ("keys_are_derived", "update bursar.deployment set deployment_id = gen_random_uuid()"),
    (
        "sending_is_current",
        "update bursar.instruction set state = 'sending', sending_term = 1, attempts = 1, first_sent_at = now() where merchant = 'rich'",
    ),
    ("doubt_is_kept", "update bursar.instruction set state = 'unknown' where merchant = 'rich'"),
    ("doubt_is_kept", "update bursar.instruction set state = 'pending', in_doubt = true where merchant = 'rich'"),
    ("doubt_is_kept", "update bursar.instruction set state = 'rejected', final_at = now(), in_doubt = true where merchant = 'rich'"),
    (
        "one_run_per_tick",
        "drop index bursar.run_one_per_job_and_tick;
         insert into bursar.run (job_id, job, election, kind, tick, due_at, cutoff_at, value_date, definition, fingerprint, state, opened_term)
         select job_id, job, election, kind, tick, due_at, cutoff_at, value_date, definition, fingerprint, state, opened_term
           from bursar.run limit 1",
    ),
    (
        "one_run_per_tick",
        "drop index bursar.unit_one_per_run_and_key;
         insert into bursar.unit (run_id, election, key) select run_id, election, key from bursar.unit limit 1",
    ),
    (
        "run_is_not_early",
        "alter table bursar.run drop constraint run_is_not_early; update bursar.run set opened_at = due_at - interval '1 second'",
    ),
    ("run_is_not_early", "update bursar.run set state = 'complete' where state = 'open'"),
    ("journals_balance", "update bursar.posting set currency = 'USD' where debit_owner = 'rich'"),
    ("journals_balance", "update bursar.posting set amount = amount + 1 where debit_owner = 'rich'"),
    ("journals_balance", "delete from bursar.posting where debit_owner = 'rich' or credit_owner = 'rich'"),
    ("journals_balance", "update bursar.posting set debit_owner = 'poor' where debit_owner = 'rich'"),
    ("payable_is_zero", "delete from bursar.posting where debit_owner = 'rich'"),
    ("payable_is_zero", "update bursar.posting set amount = amount - 1 where credit_owner = 'rich'"),
    ("carry_equals_open_carries", "update bursar.entry set amount = amount - 1 where kind = 'carry' and unit_id is null"),
    ("carry_equals_open_carries", "delete from bursar.posting where credit_kind = 'carry' or debit_kind = 'carry'"),
    ("payout_clearing_equals_unfinal", "update bursar.instruction set state = 'paid', final_at = now() where merchant = 'rich'"),
    ("payout_clearing_equals_unfinal", "delete from bursar.instruction where merchant = 'rich'"),
    ("merchants_add_up", "delete from bursar.entry where merchant = 'rich'"),
    ("merchants_add_up", "update bursar.instruction set state = 'rejected', final_at = now() where merchant = 'rich'"),
    ("merchants_add_up", "delete from bursar.posting where credit_kind = 'fees'"),
];

#[tokio::test]
async fn a_store_in_which_everything_happened_once_is_clean_and_every_guarantee_is_looked_at() {
    let report = audit(&whole().await).await;
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

#[tokio::test]
async fn a_store_broken_by_hand_is_reported_by_the_check_that_guards_it() {
    for (name, statements) in BREAKS {
        let database = whole().await;
        let touched = database.execute(&format!("set session_replication_role = replica; {statements}")).await;
        assert!(touched > 0, "{statements} breaks nothing");
        let report = audit(&database).await;
        let check = found(&report, name);
        assert!(check.violations > 0, "{name} does not see: {statements}");
        assert!(!check.examples.is_empty() && check.examples.len() <= 20, "{check:?}");
    }
    let broken: std::collections::BTreeSet<&str> = BREAKS.iter().map(|(name, _)| *name).collect();
    let report = audit(&whole().await).await;
    let unbroken: Vec<_> =
        report.checks.iter().map(|check| check.name.as_str()).filter(|name| !broken.contains(name)).collect();
    assert_eq!(unbroken, ["halted_does_nothing"], "each check has been seen to fail");
}

#[tokio::test]
async fn what_is_written_while_halted_is_reported_and_what_is_written_before_and_after_is_not() {
    let desk = Desk::on(whole().await).await;
    let job = desk.job("other", everything()).await;
    desk.settled(&job).await;
    let by = actor();
    let halt = || desk.store.halt(&Scope::All, "drill", &by);
    halt().await.expect("it is halted");
    halt().await.expect("it is halted already");
    desk.store.resume(&Scope::All, "drill over", &actor()).await.expect("it is resumed");
    desk.settled(&job).await;
    desk.audit_is_clean().await;
    halt().await.expect("it is halted");
    let run = desk.run(&job, "2026-01-01T00:00:00Z".parse().expect("a time")).await;
    let check = found(&audit(&desk.database).await, "halted_does_nothing").clone();
    assert_eq!(check.violations, 1, "{check:?}");
    assert!(check.examples[0].contains(&format!("run {} ", run.id)), "{check:?}");
    desk.database
        .execute(&format!(
            "insert into bursar.batch (run_id, election, term, units, settled, carried, empty, set_aside, instructions)
             values ({}, 'settlement', 3, 1, 0, 0, 0, 1, 0), ({0}, 'settlement', 3, 1, 0, 0, 1, 0, 0)",
            run.id
        ))
        .await;
    desk.store.resume(&Scope::All, "drill over", &actor()).await.expect("it is resumed");
    let check = found(&audit(&desk.database).await, "halted_does_nothing").clone();
    assert_eq!(check.violations, 2, "setting aside is recording: {check:?}");
    let since = "(select max(at) from bursar.operator_act where action = 'halt')";
    let sent = format!(
        "update bursar.instruction set first_sent_at = {since} + interval '1 microsecond' where merchant = 'rich'"
    );
    desk.database.execute(&sent).await;
    let check = found(&audit(&desk.database).await, "halted_does_nothing").clone();
    assert_eq!(check.violations, 3, "a call that left while halted: {check:?}");
}

#[tokio::test]
async fn what_cannot_be_compared_is_said_not_counted() {
    let database = whole().await;
    database.execute("update bursar.term_history set timeline = timeline + 1 where term = 2").await;
    database.execute("update bursar.job set removed_at = now()").await;
    let report = audit(&database).await;
    assert!(report.is_clean());
    let told = found(&report, "no_stale_write").not_proven.clone().expect("it is said");
    assert!(told.contains("settlement term 1"), "{told}");
    let told = found(&report, "carry_equals_open_carries").not_proven.clone().expect("it is said");
    assert!(told.contains("jobs that are gone"), "{told}");
}

mod timed {
    use super::*;

    #[expect(clippy::print_stdout, reason = "the figures are what it is run for")]
    #[tokio::test]
    async fn a_hundred_thousand_entries_are_audited_in_seconds() {
        let desk = Desk::open().await;
        let job = desk.job("daily", everything()).await;
        desk.import("adyen", bulk("b", 10_000, 10)).await;
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

//! Entries in and out again: all or nothing, once, conflicts with both contents, taken back without a trace in the sums.

use std::time::Duration;

use bursar::domain::entry::EntryKind;
use bursar::domain::unit::UnitState;
use bursar::store::{ImportOutcome, RevertOutcome, StoreError};

use super::desk::{Desk, Ground, actor, bulk, capture, entry, everything, file, on_every_store};

on_every_store!(
    the_same_file_again_or_under_another_name_brings_nothing,
    one_file_from_several_replicas_at_once_is_brought_in_once,
    a_conflict_is_shown_with_both_contents_and_nothing_of_the_file_stays,
    what_only_bursar_writes_is_refused_in_a_file,
    a_large_import_and_a_run_that_settles_do_not_get_into_each_others_way,
    an_import_taken_back_leaves_the_sums_per_merchant_as_before,
    what_is_taken_back_is_netted_by_the_job_that_settled_it_whatever_sources_it_selects,
    an_import_is_taken_back_while_its_entries_are_being_settled,
);

async fn the_same_file_again_or_under_another_name_brings_nothing<D: Ground>() {
    let desk = Desk::<D>::new().await;
    let entries =
        vec![capture("a1", "acme", "EUR", "10.00"), entry("a2", "acme", "JPY", EntryKind::Refund, "-500", "")];
    let first = desk.import("adyen", entries.clone()).await;
    assert_eq!((first.rows, first.by.as_str()), (2, "tester@bench"));
    let sums: Vec<_> = first.sums.iter().map(|(code, sum)| (code.as_str(), sum.as_str())).collect();
    assert_eq!(sums, [("EUR", "10.00"), ("JPY", "-500")]);
    for name in ["entries.csv", "other.csv"] {
        let again = desk.store.import(&file("adyen", name, entries.clone()), &actor()).await.expect("it answers");
        assert_eq!(again, ImportOutcome::NothingNew { same_file: Some(first.id), known: 2 });
    }
    let mut more = entries;
    more.push(capture("a3", "acme", "EUR", "0.01"));
    let grown = desk.store.import(&file("adyen", "more.csv", more.clone()), &actor()).await.expect("it answers");
    let ImportOutcome::Imported { import, known: 2 } = grown else { panic!("{grown:?}") };
    assert_eq!((import.rows, import.sums["EUR"].as_str()), (1, "0.01"));
    // Another source is another name space.
    assert_eq!(desk.import("stripe", more).await.rows, 3);
    let listed: Vec<i64> =
        desk.store.imports(10).await.expect("it answers").into_iter().map(|import| import.id).collect();
    assert_eq!((listed.len(), listed.last()), (3, Some(&first.id)));
    let acts: i64 = desk.database.value("select count(*) from bursar.operator_act where action = 'import'").await;
    assert_eq!(acts, 3, "what brought nothing is no act");
}

async fn one_file_from_several_replicas_at_once_is_brought_in_once<D: Ground>() {
    let desk = Desk::<D>::new().await;
    for round in 0..4 {
        let entries = bulk(&format!("r{round}-"), 500, 6);
        let mut shuffled = entries.clone();
        shuffled.reverse();
        let (one, two, three) = (desk.another_store(), desk.another_store(), desk.another_store());
        let (a, b) = (file("adyen", "a.csv", entries.clone()), file("adyen", "b.csv", shuffled));
        let c = file("adyen", "c.csv", entries);
        let by = actor();
        let outcomes = tokio::join!(one.import(&a, &by), two.import(&b, &by), three.import(&c, &by));
        let outcomes = [outcomes.0, outcomes.1, outcomes.2].map(|outcome| outcome.expect("no error, no deadlock"));
        let brought = outcomes.iter().filter(|o| matches!(o, ImportOutcome::Imported { .. })).count();
        let nothing = outcomes.iter().filter(|o| matches!(o, ImportOutcome::NothingNew { known: 3000, .. })).count();
        assert_eq!((brought, nothing), (1, 2), "{outcomes:?}");
    }
    let rows: i64 = desk.database.value("select count(*) from bursar.entry").await;
    assert_eq!(rows, 4 * 3000);
}

async fn a_conflict_is_shown_with_both_contents_and_nothing_of_the_file_stays<D: Ground>() {
    let desk = Desk::<D>::new().await;
    let first =
        desk.import("adyen", vec![capture("a1", "acme", "EUR", "10.00"), capture("a2", "bona", "EUR", "1.00")]).await;
    let offered = vec![
        capture("a0", "acme", "EUR", "5.00"),
        capture("a1", "acme", "EUR", "10.01"),
        capture("a2", "bona", "EUR", "1.00"),
        capture("a3", "acme", "EUR", "5.00"),
    ];
    let outcome = desk.store.import(&file("adyen", "f.csv", offered.clone()), &actor()).await.expect("it answers");
    let ImportOutcome::Conflicts { shown, total: 1 } = outcome else { panic!("{outcome:?}") };
    assert_eq!(shown.len(), 1);
    assert_eq!((shown[0].line, shown[0].import), (3, first.id));
    assert_eq!((shown[0].offered.amount, shown[0].found.amount), (1001, 1000));
    assert_eq!((&shown[0].offered, shown[0].found.id.as_str()), (&offered[1], "a1"));
    let rows: i64 = desk.database.value("select count(*) from bursar.entry").await;
    assert_eq!(rows, 2);
    // One id twice in a file: the same is one entry, other content a conflict with itself.
    let twice = vec![capture("b1", "acme", "EUR", "1.00"), capture("b1", "acme", "EUR", "1.00")];
    assert_eq!(desk.import("stripe", twice).await.rows, 1);
    let twice = vec![capture("b2", "acme", "EUR", "1.00"), capture("b2", "acme", "EUR", "2.00")];
    let outcome = desk.store.import(&file("stripe", "f.csv", twice), &actor()).await.expect("it answers");
    assert!(matches!(outcome, ImportOutcome::Conflicts { total: 1, .. }), "{outcome:?}");
    // Many: the list is bounded, the number is not.
    desk.import("many", bulk("m", 300, 1)).await;
    let mut changed = bulk("m", 300, 1);
    for entry in &mut changed {
        entry.fee = 2;
    }
    let outcome = desk.store.import(&file("many", "f.csv", changed), &actor()).await.expect("it answers");
    assert!(matches!(&outcome, ImportOutcome::Conflicts { shown, total: 300 } if shown.len() == 100), "{outcome:?}");
}

async fn what_only_bursar_writes_is_refused_in_a_file<D: Ground>() {
    let desk = Desk::<D>::new().await;
    let own = desk.store.import(&file("bursar", "f.csv", vec![capture("a", "m", "EUR", "1")]), &actor()).await;
    assert!(matches!(own, Err(StoreError::Broken { .. })), "{own:?}");
    let carry = vec![entry("a", "m", "EUR", EntryKind::Carry, "1", "")];
    let carry = desk.store.import(&file("adyen", "f.csv", carry), &actor()).await;
    assert!(matches!(&carry, Err(StoreError::Broken { detail, .. }) if detail.contains("line 2")), "{carry:?}");
}

async fn a_large_import_and_a_run_that_settles_do_not_get_into_each_others_way<D: Ground>() {
    let desk = Desk::<D>::new().await;
    let job = desk.job("daily", everything()).await;
    desk.import("adyen", bulk("first-", 5000, 4)).await;
    let run = desk.planned(&job).await;
    let (large, by) = (file("adyen", "large.csv", bulk("second-", 5000, 10)), actor());
    let importing = desk.another_store();
    let (imported, counts) = tokio::join!(importing.import(&large, &by), desk.settle_in(&run, 500));
    assert!(
        matches!(imported.expect("no deadlock reaches the user"), ImportOutcome::Imported { import, .. } if import.rows == 50_000)
    );
    assert_eq!(counts.settled, 5000);
    let charged: i64 = desk.database.value("select count(*) from bursar.unit where attempts > 0").await;
    assert_eq!(charged, 0);
    desk.settled(&job).await;
    let paid: i64 = desk.database.value("select sum(amount)::bigint from bursar.instruction").await;
    assert_eq!(paid, 70_000 * 99);
    desk.audit_is_clean().await;
}

async fn an_import_taken_back_leaves_the_sums_per_merchant_as_before<D: Ground>() {
    let desk = Desk::<D>::new().await;
    let job = desk.job("daily", everything()).await;
    desk.import("adyen", vec![capture("a1", "acme", "EUR", "10.00")]).await;
    let before = desk.standing().await;
    let wrong = || {
        vec![
            entry("w1", "acme", "EUR", EntryKind::Capture, "7.00", "0.20"),
            entry("w2", "bona", "EUR", EntryKind::Refund, "-3.00", ""),
            capture("w3", "bona", "JPY", "500"),
        ]
    };
    // Open: withdrawn.
    let import = desk.import("adyen", wrong()).await;
    let back = desk.store.revert_import(import.id, "wrong file", &actor()).await.expect("it answers");
    assert_eq!(back, RevertOutcome::Reverted { withdrawn: 3, adjusted: 0 });
    assert_eq!(desk.standing().await, before);
    let again = desk.store.revert_import(import.id, "wrong file", &actor()).await.expect("it answers");
    assert!(matches!(again, RevertOutcome::Already { .. }), "{again:?}");
    let none = desk.store.revert_import(999, "no such", &actor()).await.expect("it answers");
    assert_eq!(none, RevertOutcome::NotFound);
    // Settled: the ids are free, and what is paid is answered by opposite adjustments.
    let import = desk.import("adyen", wrong()).await;
    let run = desk.settled(&job).await;
    assert_eq!(desk.unit(&run, "EUR:acme").await.net.as_deref(), Some("16.80"));
    assert_eq!(desk.unit(&run, "EUR:bona").await.state, UnitState::Carried);
    let back = desk.store.revert_import(import.id, "wrong again", &actor()).await.expect("it answers");
    assert_eq!(back, RevertOutcome::Reverted { withdrawn: 0, adjusted: 3 });
    assert_eq!(desk.standing().await, before);
    let view = desk.store.import_by_id(import.id).await.expect("it answers").expect("there is the import");
    assert_eq!((view.open, view.settled, view.withdrawn, view.reverted), (0, 0, 0, 3));
    assert_eq!(view.record.revert_reason.as_deref(), Some("wrong again"));
    desk.audit_is_clean().await;
    let run = desk.settled(&job).await;
    assert_eq!(desk.unit(&run, "EUR:acme").await.net.as_deref(), Some("-6.80"));
    let bona = desk.unit(&run, "EUR:bona").await;
    assert_eq!((bona.state, bona.net.as_deref()), (UnitState::Settled, Some("0.00")), "the carry meets its opposite");
    assert_eq!(desk.import("adyen", wrong()).await.rows, 3, "ids are free again");
    desk.settled(&job).await;
    desk.audit_is_clean().await;
}

async fn what_is_taken_back_is_netted_by_the_job_that_settled_it_whatever_sources_it_selects<D: Ground>() {
    let desk = Desk::<D>::new().await;
    let adyen = bursar::domain::job::LedgerDefinition { sources: ["adyen".to_owned()].into(), ..everything() };
    let stripe = bursar::domain::job::LedgerDefinition { sources: ["stripe".to_owned()].into(), ..everything() };
    let (job, other) = (desk.job("a", adyen).await, desk.job("s", stripe).await);
    let import = desk.import("adyen", vec![capture("a1", "acme", "EUR", "5.00")]).await;
    desk.settled(&job).await;
    desk.store.revert_import(import.id, "wrong", &actor()).await.expect("it answers");
    assert!(desk.units(&desk.settled(&other).await).await.is_empty());
    let run = desk.settled(&job).await;
    assert_eq!(desk.unit(&run, "EUR:acme").await.net.as_deref(), Some("-5.00"));
    desk.audit_is_clean().await;
}

async fn an_import_is_taken_back_while_its_entries_are_being_settled<D: Ground>() {
    let desk = Desk::<D>::new().await;
    let job = desk.job("daily", everything()).await;
    for round in 0..3 {
        let import = desk.import("adyen", bulk(&format!("r{round}-"), 400, 5)).await;
        let run = desk.planned(&job).await;
        let (back, by) = (desk.another_store(), actor());
        let revert = async {
            tokio::time::timeout(Duration::from_mins(1), back.revert_import(import.id, "wrong", &by))
                .await
                .expect("in time")
        };
        let (_, outcome) = tokio::join!(desk.settle_in(&run, 50), revert);
        let outcome = outcome.expect("no deadlock reaches the user");
        let RevertOutcome::Reverted { withdrawn, adjusted } = outcome else { panic!("{outcome:?}") };
        assert_eq!(withdrawn + adjusted, 2000);
        desk.settled(&job).await;
        assert!(desk.standing().await.is_empty(), "everything is taken back");
        desk.audit_is_clean().await;
    }
}

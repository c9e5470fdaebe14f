//! Entries in and out again: all or nothing, once, conflicts with both contents, taken back without a trace in the sums.

use bursar::domain::entry::EntryKind;
use bursar::domain::job::{HandlerDefinition, LedgerDefinition};
use bursar::domain::unit::UnitState;
use bursar::store::{ImportOutcome, RevertOutcome, StoreError};

use super::bench::{Bench, actor, bulk, capture, definition, entry, everything, file, mine};

pub async fn the_same_file_again_or_under_another_name_brings_nothing(bench: &Bench) {
    let entries =
        vec![capture("a1", "acme", "EUR", "10.00"), entry("a2", "acme", "JPY", EntryKind::Refund, "-500", "")];
    let first = bench.import("adyen", entries.clone()).await;
    assert_eq!((first.rows, first.by.as_str()), (2, "tester@bench"));
    let sums: Vec<_> = first.sums.iter().map(|(code, sum)| (code.as_str(), sum.as_str())).collect();
    assert_eq!(sums, [("EUR", "10.00"), ("JPY", "-500")]);
    let before = bench.picture().await;
    for name in ["entries.csv", "other.csv"] {
        let again = bench.store.import(&file("adyen", name, entries.clone()), &actor()).await.expect("an answer");
        assert_eq!(again, ImportOutcome::NothingNew { same_file: Some(first.id), known: 2 });
    }
    assert_eq!(bench.picture().await, before, "what brought nothing is no import and no act");
    let mut more = entries;
    more.push(capture("a3", "acme", "EUR", "0.01"));
    let grown = bench.store.import(&file("adyen", "more.csv", more.clone()), &actor()).await.expect("an answer");
    let ImportOutcome::Imported { import, known: 2 } = grown else { panic!("{grown:?}") };
    assert_eq!((import.rows, import.sums["EUR"].as_str()), (1, "0.01"));
    // Another source is another name space.
    assert_eq!(bench.import("stripe", more).await.rows, 3);
    let listed = bench.store.imports(2).await.expect("an answer");
    assert_eq!(listed.iter().map(|import| import.source.as_str()).collect::<Vec<_>>(), ["stripe", "adyen"]);
    assert_eq!(bench.store.import_by_id(first.id).await.expect("an answer").expect("it is there").record, first);
    assert_eq!(bench.store.import_by_id(i64::MAX).await, Ok(None));
}

pub async fn a_conflict_is_shown_with_both_contents_and_nothing_of_the_file_stays(bench: &Bench) {
    let first =
        bench.import("adyen", vec![capture("a1", "acme", "EUR", "10.00"), capture("a2", "bona", "EUR", "1.00")]).await;
    let offered = vec![
        capture("a0", "acme", "EUR", "5.00"),
        capture("a1", "acme", "EUR", "10.01"),
        capture("a2", "bona", "EUR", "1.00"),
        capture("a3", "acme", "EUR", "5.00"),
    ];
    let before = bench.picture().await;
    let outcome = bench.store.import(&file("adyen", "f.csv", offered.clone()), &actor()).await.expect("an answer");
    let ImportOutcome::Conflicts { shown, total: 1 } = outcome else { panic!("{outcome:?}") };
    assert_eq!((shown.len(), shown[0].line, shown[0].import), (1, 3, first.id));
    assert_eq!((&shown[0].offered, shown[0].found.amount), (&offered[1], 1000));
    assert_eq!(bench.picture().await, before, "nothing changed");
    let left = vec![capture("a0", "acme", "EUR", "5.00"), capture("a3", "acme", "EUR", "5.00")];
    assert_eq!(bench.import("adyen", left).await.rows, 2, "nothing of it had stayed");
    // One id twice in a file: the same is one entry, other content a conflict with itself.
    let twice = vec![capture("b1", "acme", "EUR", "1.00"), capture("b1", "acme", "EUR", "1.00")];
    assert_eq!(bench.import("stripe", twice).await.rows, 1);
    let twice = vec![capture("b2", "acme", "EUR", "1.00"), capture("b2", "acme", "EUR", "2.00")];
    let outcome = bench.store.import(&file("stripe", "f.csv", twice), &actor()).await.expect("an answer");
    assert!(matches!(outcome, ImportOutcome::Conflicts { total: 1, .. }), "{outcome:?}");
    // Many: the list is bounded, the number is not.
    bench.import("many", bulk("m", 150, 1)).await;
    let mut changed = bulk("m", 150, 1);
    for entry in &mut changed {
        entry.fee = 2;
    }
    let outcome = bench.store.import(&file("many", "f.csv", changed), &actor()).await.expect("an answer");
    assert!(matches!(&outcome, ImportOutcome::Conflicts { shown, total: 150 } if shown.len() == 100), "{outcome:?}");
}

pub async fn what_only_bursar_writes_is_refused_in_a_file(bench: &Bench) {
    let before = bench.picture().await;
    let own = bench.store.import(&file("bursar", "f.csv", vec![capture("a", "m", "EUR", "1")]), &actor()).await;
    assert!(matches!(own, Err(StoreError::Broken { .. })), "{own:?}");
    let carry = vec![entry("a", "m", "EUR", EntryKind::Carry, "1", "")];
    let carry = bench.store.import(&file("adyen", "f.csv", carry), &actor()).await;
    assert!(matches!(&carry, Err(StoreError::Broken { detail, .. }) if detail.contains("line 2")), "{carry:?}");
    assert_eq!(bench.picture().await, before, "nothing changed");
}

pub async fn an_import_taken_back_leaves_the_sums_as_before_and_its_ids_free(bench: &Bench) {
    let leads = bench.lead(1).await;
    let tenure = leads.as_ref();
    let job = bench.job(tenure, definition("daily", HandlerDefinition::Ledger(everything()))).await;
    bench.import("adyen", vec![capture("a1", "acme", "EUR", "10.00")]).await;
    let wrong = || {
        vec![
            entry("w1", "acme", "EUR", EntryKind::Capture, "7.00", "0.20"),
            entry("w2", "bona", "EUR", EntryKind::Refund, "-3.00", ""),
            capture("w3", "bona", "JPY", "500"),
        ]
    };
    // Open: withdrawn, once.
    let import = bench.import("adyen", wrong()).await;
    let back = bench.store.revert_import(import.id, "wrong file", &actor()).await.expect("an answer");
    assert_eq!(back, RevertOutcome::Reverted { withdrawn: 3, adjusted: 0 });
    let before = bench.picture().await;
    let again = bench.store.revert_import(import.id, "wrong file", &actor()).await.expect("an answer");
    assert!(matches!(again, RevertOutcome::Already { .. }), "{again:?}");
    let none = bench.store.revert_import(i64::MAX, "no such", &actor()).await.expect("an answer");
    assert_eq!(none, RevertOutcome::NotFound);
    assert_eq!(bench.picture().await, before, "nothing changed");
    assert_eq!(bench.store.audit().await.expect("an answer").open, [("EUR".to_owned(), "10.00".to_owned())].into());
    // Settled: what is paid is answered by opposite adjustments.
    let import = bench.import("adyen", wrong()).await;
    let run = bench.settled(tenure, &job).await;
    assert_eq!(bench.unit(run.id, "EUR:acme").await.net.as_deref(), Some("16.80"));
    assert_eq!(bench.unit(run.id, "EUR:bona").await.state, UnitState::Carried);
    let back = bench.store.revert_import(import.id, "wrong again", &actor()).await.expect("an answer");
    assert_eq!(back, RevertOutcome::Reverted { withdrawn: 0, adjusted: 3 });
    let view = bench.store.import_by_id(import.id).await.expect("an answer").expect("there is the import");
    assert_eq!((view.open, view.settled, view.withdrawn, view.reverted), (0, 0, 0, 3));
    assert_eq!(view.record.revert_reason.as_deref(), Some("wrong again"));
    let run = bench.settled(tenure, &job).await;
    assert_eq!(bench.unit(run.id, "EUR:acme").await.net.as_deref(), Some("-6.80"));
    let bona = bench.unit(run.id, "EUR:bona").await;
    assert_eq!((bona.state, bona.net.as_deref()), (UnitState::Settled, Some("0.00")), "the carry meets its opposite");
    assert_eq!(bench.import("adyen", wrong()).await.rows, 3, "ids are free again");
    bench.settled(tenure, &job).await;
    mine(leads.pulse().await);
}

pub async fn what_is_taken_back_is_netted_by_the_job_that_settled_it_whatever_it_selects(bench: &Bench) {
    let leads = bench.lead(1).await;
    let tenure = leads.as_ref();
    let of = |source: &str| {
        HandlerDefinition::Ledger(LedgerDefinition { sources: [source.to_owned()].into(), ..everything() })
    };
    let job = bench.job(tenure, definition("a", of("adyen"))).await;
    let other = bench.job(tenure, definition("s", of("stripe"))).await;
    let greedy = bench.job(tenure, definition("all", HandlerDefinition::Ledger(everything()))).await;
    let import = bench.import("adyen", vec![capture("a1", "acme", "EUR", "5.00")]).await;
    bench.settled(tenure, &job).await;
    bench.store.revert_import(import.id, "wrong", &actor()).await.expect("an answer");
    for job in [&other, &greedy] {
        assert!(bench.units(bench.settled(tenure, job).await.id).await.is_empty());
    }
    let run = bench.settled(tenure, &job).await;
    assert_eq!(bench.unit(run.id, "EUR:acme").await.net.as_deref(), Some("-5.00"));
}

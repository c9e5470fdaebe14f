//! Entries in and out again: all or nothing, once, conflicts with both contents, taken back without a trace in the sums.

use std::time::Duration;

use bursar::store::{ImportOutcome, RevertOutcome};

use super::desk::{Desk, Ground, actor, bulk, everything, file, on_every_store};

on_every_store!(
    one_file_from_several_replicas_at_once_is_brought_in_once,
    a_large_import_and_a_run_that_settles_do_not_get_into_each_others_way,
    an_import_is_taken_back_while_its_entries_are_being_settled,
);

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

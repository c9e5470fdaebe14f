//! The ledger, through the store's port: what is bound, netted, posted, carried and instructed, and by whom only once.

use bursar::domain::entry::EntryKind;
use bursar::domain::job::{LedgerDefinition, Release};
use bursar::domain::unit::UnitState;
use bursar::store::{SettleOutcome, UnitPick};

use super::desk::{Desk, Ground, bulk, capture, currency, effect, entry, everything, mine, on_every_store};

on_every_store!(
    below_the_minimum_is_carried_above_the_maximum_held_and_zero_settled_without_an_instruction,
    two_runs_that_pick_one_merchant_at_once_post_its_entries_once,
    a_held_merchant_gets_no_unit_and_binds_nothing_where_it_has_one,
    a_key_is_the_same_again_when_the_same_is_settled_again_after_a_loss,
);

async fn below_the_minimum_is_carried_above_the_maximum_held_and_zero_settled_without_an_instruction<D: Ground>() {
    let desk = Desk::<D>::new().await;
    let eur = currency("EUR");
    let definition = LedgerDefinition {
        minimum_payout: [(eur, 100)].into(),
        maximum_payout: [(eur, 1000)].into(),
        release: Release::Manual,
        ..everything()
    };
    let job = desk.job("daily", definition).await;
    desk.import(
        "adyen",
        vec![
            capture("a1", "below", "EUR", "0.99"),
            capture("a2", "least", "EUR", "1.00"),
            capture("a3", "most", "EUR", "10.00"),
            capture("a4", "above", "EUR", "10.01"),
            entry("a5", "zero", "EUR", EntryKind::Capture, "5.00", "5.00"),
            capture("a6", "free", "USD", "0.01"),
        ],
    )
    .await;
    let run = desk.settled(&job).await;
    for (key, state, instruction) in [
        ("EUR:below", UnitState::Carried, None),
        ("EUR:least", UnitState::Settled, Some(("pending", None))),
        ("EUR:most", UnitState::Settled, Some(("pending", None))),
        ("EUR:above", UnitState::Settled, Some(("held", Some("over_limit")))),
        ("EUR:zero", UnitState::Settled, None),
        ("USD:free", UnitState::Settled, Some(("pending", None))),
    ] {
        let unit = desk.unit(&run, key).await;
        assert_eq!(unit.state, state, "{key}");
        let found = unit.instructions.first().map(|i| (i.state.as_str(), i.reason.as_deref()));
        assert_eq!(found, instruction, "{key}");
    }
    let waiting: i64 = desk.database.value("select count(*) from bursar.instruction where release = 'waiting'").await;
    assert_eq!(waiting, 4);
    desk.audit_is_clean().await;
}

async fn two_runs_that_pick_one_merchant_at_once_post_its_entries_once<D: Ground>() {
    let desk = Desk::<D>::new().await;
    let (one, other) = (desk.job("one", everything()).await, desk.job("other", everything()).await);
    for round in 0..8 {
        desk.import("adyen", bulk(&format!("r{round}-"), 50, 20)).await;
        let (one, other) = (desk.planned(&one).await, desk.planned(&other).await);
        let (first, second) = tokio::join!(desk.settle_in(&one, 25), desk.settle_in(&other, 25));
        assert_eq!(first.settled + second.settled, 50, "{first:?} {second:?}");
        assert_eq!(first.empty + second.empty, 50, "{first:?} {second:?}");
    }
    let paid: i64 = desk.database.value("select sum(amount)::bigint from bursar.instruction").await;
    assert_eq!(paid, 8 * 50 * 20 * 99);
    desk.audit_is_clean().await;
}

#[tokio::test]
async fn an_entry_that_is_committed_after_its_run_has_settled_is_in_the_next_run() {
    // SQLite has one writer at a time: there, what is written before is committed before.
    let desk = Desk::open().await;
    let job = desk.job("daily", everything()).await;
    desk.import("adyen", vec![capture("a1", "acme", "EUR", "1.00")]).await;
    // Written before the cutoff, committed after the run has read.
    let mut late = desk.database.connect().await;
    sqlx::raw_sql(
        "begin; with act as (insert into bursar.operator_act (os_user, host, action, target) values ('u', 'h', 'import', 'f')
         returning id), i as (insert into bursar.import (source, file_name, sha256, rows, sums, act_id)
         select 'stripe', 'f', 's', 1, '{}', id from act returning id)
         insert into bursar.entry (source, external_id, merchant, currency, kind, amount, fee, occurred_at, available_at, import_id)
         select 'stripe', 's1', 'acme', 'EUR', 'capture', 250, 0, '2026-01-05', '2026-01-05', id from i",
    )
    .execute(&mut late)
    .await
    .expect("the schema is ours");
    let run = desk.settled(&job).await;
    assert_eq!(desk.unit(&run, "EUR:acme").await.net.as_deref(), Some("1.00"));
    sqlx::raw_sql("commit").execute(&mut late).await.expect("it commits");
    let run = desk.settled(&job).await;
    assert_eq!(desk.unit(&run, "EUR:acme").await.net.as_deref(), Some("2.50"));
    desk.audit_is_clean().await;
}

async fn a_held_merchant_gets_no_unit_and_binds_nothing_where_it_has_one<D: Ground>() {
    let desk = Desk::<D>::new().await;
    let job = desk.job("daily", everything()).await;
    desk.import("adyen", vec![capture("a1", "acme", "EUR", "1.00"), capture("a2", "bona", "EUR", "1.00")]).await;
    let early = desk.planned(&job).await;
    desk.database
        .broken_by(D::words(
            "with a as (insert into bursar.operator_act (os_user, host, action, target) values ('u', 'h', 'hold', 'acme')
             returning id) insert into bursar.merchant_hold (merchant, reason, act_id) select 'acme', 'fraud', id from a",
            "insert into operator_act (at, os_user, host, action, target) values (0, 'u', 'h', 'hold', 'acme');
             insert into merchant_hold (merchant, reason, held_at, act_id) values ('acme', 'fraud', 0, last_insert_rowid())",
        ))
        .await;
    desk.settle(&early).await;
    assert_eq!(desk.unit(&early, "EUR:acme").await.state, UnitState::Empty);
    assert_eq!(desk.unit(&early, "EUR:bona").await.state, UnitState::Settled);
    assert!(desk.units(&desk.settled(&job).await).await.is_empty());
    desk.database.broken_by("delete from bursar.merchant_hold").await;
    let run = desk.settled(&job).await;
    assert_eq!(desk.unit(&run, "EUR:acme").await.net.as_deref(), Some("1.00"));
    desk.audit_is_clean().await;
}

async fn a_key_is_the_same_again_when_the_same_is_settled_again_after_a_loss<D: Ground>() {
    let desk = Desk::<D>::new().await;
    let job = desk.job("daily", everything()).await;
    desk.import("adyen", vec![capture("a1", "acme", "EUR", "1.00")]).await;
    let run = desk.settled(&job).await;
    let key = desk.unit(&run, "EUR:acme").await.instructions[0].key.clone();
    // The store forgets: what was settled is gone, by hand, and is settled again under the next term.
    desk.database
        .broken_by(
            "delete from bursar.instruction; delete from bursar.posting;
             delete from bursar.journal; update bursar.entry set unit_id = null; delete from bursar.unit;
             delete from bursar.batch; update bursar.run set state = 'planning'",
        )
        .await;
    let mut desk = desk;
    desk.succeed().await;
    desk.plan(&run).await;
    let settled = mine(desk.tenure.settle(&run, UnitPick::Fresh { after: 0, limit: 10 }, &effect(&run)).await);
    assert!(matches!(settled, SettleOutcome::Settled(_)), "{settled:?}");
    let unit = desk.unit(&run, "EUR:acme").await;
    assert_eq!(unit.instructions[0].key, key);
    assert_eq!(unit.term, Some(2));
}
